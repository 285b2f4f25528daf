import re

import pytest

from moorage import (
    SKIP,
    FilterPlugin,
    Node,
    Nodes,
    Normalization,
    Pod,
    Preparation,
    Rejection,
    Scope,
    ScorePlugin,
    Scores,
    Verdicts,
)
from moorage.models import Toleration
from moorage.testing import assert_node_local, make_node, make_pod

FULL = Rejection("node is full")
NODES = make_node("big", allocatable={"cpu": "8"}), make_node("small", allocatable={"cpu": "2"})
POD = make_pod("web-0")
OTHERS = [make_pod("a", node="big"), make_pod("b", node="big")]


class Roomy(FilterPlugin, ScorePlugin):
    """Keeps pods off nodes with two pods, and prefers large ones."""

    depends_on = Scope.NODE
    normalization = Normalization.MAXIMUM

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return FULL if len(node.pods) > 1 else None

    def score_node(self, pod: Pod, node: Node) -> float:
        return node.allocatable["cpu"]


class Fullest(FilterPlugin):
    """Keeps pods off the node with most pods."""

    depends_on = Scope.NODE

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        counts = nodes.requested("pods")
        return nodes.verdicts().reject((len(nodes) > 1) & (counts == counts.max()), FULL)


class SkipsSmall(ScorePlugin):
    """Has nothing to say to clusters without a large node."""

    depends_on = Scope.NODE

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return None if (nodes.allocatable("cpu") > 4000).any() else SKIP

    def score_node(self, pod: Pod, node: Node) -> float:
        return 7


class ByName(FilterPlugin):
    """Keeps the first pod of a StatefulSet off all nodes."""

    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return FULL if pod.name.endswith("-0") else None


class ByStatus(ByName):
    """Looks at where a pod is nominated."""

    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return FULL if pod.status.nominated_node_name else None


class Calm(ScorePlugin):
    """Prefers nodes to which no pod came of late."""

    depends_on = Scope.NODE

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        return 100 - nodes.newly_placed("pods", lambda pod: 1, within=60)


class Turns(ScorePlugin):
    """Scores by how often it was asked."""

    depends_on = Scope.NODE
    asked = 0

    def score_node(self, pod: Pod, node: Node) -> float:
        self.asked += 1
        return self.asked


class Scarce(FilterPlugin):
    """Keeps pods off the largest node if there are others, whatever is on them."""

    depends_on = Scope.MANIFESTS

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        sizes = nodes.cluster.allocatable("cpu")
        largest = nodes.allocatable("cpu") == sizes.max(initial=0)
        return nodes.verdicts().reject((nodes.cluster_size > 1) & largest, FULL)


class Busiest(Scarce):
    """Looks at the pods on other nodes as well."""

    depends_on = Scope.MANIFESTS

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        most = nodes.cluster.requested("pods").max(initial=0)
        return nodes.verdicts().reject(nodes.requested("pods") < most, FULL)


class Careless(FilterPlugin):
    """Looks at a label and at tolerations, and says so of the tolerations only."""

    depends_on = Scope.NODE
    pod_fields = ("spec.tolerations",)

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return FULL if pod.labels or pod.spec.tolerations else None


class Unmarked(Roomy):
    """Says nothing of itself."""


def test_a_plugin_that_looks_at_one_node_at_a_time_passes() -> None:
    assert_node_local(Roomy(), POD, *NODES, pods=OTHERS)
    assert_node_local(Roomy(), POD)


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (
            Fullest(),
            f"its verdict of node big is {FULL}, but None if the other nodes are not there",
        ),
        (
            SkipsSmall(),
            "its score of node small is 7.0, but nothing if the other nodes are not there",
        ),
        (ByName(), f"its verdict of node big is {FULL}, but None for an equal pod of another name"),
        (
            ByStatus(),
            f"its verdict of node big is None, but {FULL} for an equal pod of another name",
        ),
        (Calm(), "its score of node big is 100.0, but 98.0 if the pods on it came just now"),
        (Turns(), "its score of node big is 1.0, but 3.0 for an equal pod of another name"),
    ],
    ids=lambda value: "" if isinstance(value, str) else value.name,
)
def test_a_plugin_that_looks_further_fails_with_the_node_and_both_answers(
    plugin: FilterPlugin | ScorePlugin, message: str
) -> None:
    text = f"^{re.escape(f'{plugin.name} depends on more than Scope.NODE: {message}')}$"
    with pytest.raises(AssertionError, match=text):
        assert_node_local(plugin, POD, *NODES, pods=OTHERS)


def test_a_plugin_that_compares_manifests_must_not_look_at_the_pods_on_other_nodes() -> None:
    assert_node_local(Scarce(), POD, *NODES, pods=OTHERS)
    text = f"its verdict of node small is {FULL}, but None if the other nodes have no pods"
    with pytest.raises(AssertionError, match=re.escape(text)):
        assert_node_local(Busiest(), POD, *NODES, pods=OTHERS)


ELSEWHERE = "for a pod that differs only outside of its pod_fields"


@pytest.mark.parametrize(
    ("pod", "answers"),
    [
        (POD, f"None, but {FULL}"),
        (make_pod("web-0", labels={"app": "web"}), f"{FULL}, but None"),
    ],
)
def test_a_plugin_that_looks_at_a_field_that_it_does_not_name_fails(pod: Pod, answers: str) -> None:
    more = "Careless depends on more than Scope.NODE"
    text = f"{more}: its verdict of node big is {answers} {ELSEWHERE}"
    with pytest.raises(AssertionError, match=f"^{re.escape(text)}$"):
        assert_node_local(Careless(), pod, *NODES)
    tolerant = make_pod("web-0", tolerations=[Toleration(operator="Exists")])
    assert_node_local(Careless(), tolerant, *NODES)


def test_an_author_may_bring_pods_that_differ_elsewhere() -> None:
    class OfTeam(FilterPlugin):
        """Keeps the pods of one team off all nodes, which it does not say."""

        depends_on = Scope.NODE
        pod_fields = ()

        def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
            return FULL if pod.labels.get("team") == "red" else None

    assert_node_local(OfTeam(), POD, *NODES)
    with pytest.raises(AssertionError, match=ELSEWHERE):
        assert_node_local(OfTeam(), POD, *NODES, unlike=[make_pod(labels={"team": "red"})])


def test_a_plugin_that_does_not_promise_it_fails() -> None:
    with pytest.raises(
        AssertionError, match=r"Unmarked does not itself declare .* Scope\.ANYTHING$"
    ):
        assert_node_local(Unmarked(), POD, *NODES)
