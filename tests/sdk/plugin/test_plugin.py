"""What a plugin is asked, and which fields of pods it reads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import (
    Arguments,
    FilterPlugin,
    Node,
    Nodes,
    Pod,
    Preparation,
    Rejection,
    ScorePlugin,
    Scores,
    Verdicts,
    normalize_by_maximum,
)
from moorage.models import (
    Affinity,
    Container,
    ImageSource,
    NodeAffinitySpec,
    PodAffinity,
    Toleration,
    Volume,
)
from moorage.plugin.base import MAX_NOTE_LENGTH
from moorage.plugin.hooks import extension_points
from moorage.plugin.pod_fields import FIELDS, SIGNATURE, alike, reader, union
from moorage.testing import make_node, make_nodes, make_pod, run_filter
from moorage.testing.locality import FULLY_SPECIFIED_POD, unlike_pods
from tests.clusters import demanding_pods


class Hot(FilterPlugin):
    """Keeps pods off nodes that run hot."""

    class Args(Arguments):
        """Degrees."""

        limit: float = 80.0

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        if float(node.annotations.get("temperature", 0)) > self.args.limit:
            return Rejection("node is too hot")
        return None


class Both(FilterPlugin, ScorePlugin):
    """Filters and scores, each in per-node form."""

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        return None

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None

    def score_node(self, pod: Pod, node: Node) -> float:
        return len(node.pods)

    def normalize(self, scores: Scores) -> Scores:
        return normalize_by_maximum(scores)


def test_a_plugin_is_called_like_its_class_unless_it_says_otherwise() -> None:
    class Renamed(Hot):
        name = "Cooler"

    class Child(Renamed):
        pass

    assert [plugin.name for plugin in (Hot, Renamed, Child)] == ["Hot", "Cooler", "Child"]


@pytest.mark.parametrize(
    ("plugin", "points"),
    [
        (Hot, ("Filter",)),
        (Both, ("PreFilter", "Filter", "PreScore", "Score", "NormalizeScore")),
        (ScorePlugin, ("Score",)),
    ],
)
def test_extension_points_are_those_that_the_class_overrides(
    plugin: type[FilterPlugin], points: tuple[str, ...]
) -> None:
    assert extension_points(plugin) == points


@pytest.mark.parametrize(
    ("scores", "reverse", "expected"),
    [
        pytest.param([1, 2, 3], False, [33, 66, 100], id="100*1//3, 100*2//3"),
        pytest.param([1, 2, 3], True, [67, 34, 0], id="reverse"),
        pytest.param([0, 0], False, [0, 0], id="all 0"),
        pytest.param([0, 0], True, [100, 100], id="all 0, reverse"),
        pytest.param([], False, [], id="none"),
        pytest.param([0.5, 0.25], False, [100, 50], id="fractions"),
    ],
)
def test_normalising_by_maximum_truncates_as_kube_scheduler_does(
    scores: list[float], reverse: bool, expected: list[float]
) -> None:
    assert normalize_by_maximum(np.array(scores, float), reverse=reverse).tolist() == expected


def test_the_first_rejection_of_a_node_counts_and_equal_ones_are_one_reason() -> None:
    full = Rejection("full", unresolvable=False)
    verdicts = Verdicts(4).reject([True, True, False, False], full)
    verdicts.reject([False, True, True, False], "far").reject([False] * 4, "never")
    verdicts.reject_at(3, Rejection("full", unresolvable=False))
    assert verdicts.codes.tolist() == [1, 1, 2, 1]
    assert verdicts.reasons == [full, Rejection("far", unresolvable=True)]
    assert verdicts.passed.tolist() == [False] * 4


def test_verdicts_that_nobody_looked_at_let_all_pass() -> None:
    verdicts = Verdicts(2).reject([False, False], "never")
    assert verdicts.untouched
    assert verdicts.reasons == []
    assert verdicts.codes.tolist() == [0, 0]
    verdicts.codes[1] = 1
    assert verdicts.passed.tolist() == [True, False]


@pytest.mark.parametrize("rejected", [False, True])
def test_a_mask_is_one_truth_value_for_each_node_or_one_for_all(rejected: bool) -> None:
    verdicts = Verdicts(3)
    if rejected:
        verdicts.reject([True, False, False], "full")
    with pytest.raises(ValueError, match="broadcast"):
        verdicts.reject([False, False], "never")
    assert verdicts.reject(True, "all").passed.tolist() == [False] * 3


def noted(text: str) -> str:
    plugin = Hot()
    plugin.note(text)
    return plugin.latest_note


def test_a_note_is_one_line_of_bounded_length() -> None:
    assert noted("measured 95 s ago;\n  2 of 5 nodes have none ") == (
        "measured 95 s ago; 2 of 5 nodes have none"
    )
    assert noted("x" * MAX_NOTE_LENGTH) == "x" * MAX_NOTE_LENGTH
    assert noted("x" * (MAX_NOTE_LENGTH + 1)) == "x" * (MAX_NOTE_LENGTH - 1) + "…"
    noted("a lone surrogate \udc80").encode()


def test_make_nodes_refuses_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="2 nodes have the name 'n'"):
        make_nodes(make_node("n"), make_node("n"))
    with pytest.raises(ValueError, match="2 pods have the name 'default/pod'"):
        make_nodes(make_node("n"), pods=[make_pod(node="n"), make_pod(node="n")])
    with pytest.raises(ValueError, match="2 pods have the uid '7'"):
        make_nodes(make_node("n"), pods=[make_pod(name, node="n", uid="7") for name in "ab"])
    with pytest.raises(ValueError, match="pod default/pod is on node 'm', which is not among"):
        make_nodes(make_node("n"), pods=[make_pod(node="m")])
    with pytest.raises(ValueError, match="cannot be placed and on a node at the same time"):
        run_filter(Hot(), make_pod(), make_node("n"), pods=[make_pod(node="n")])


REQUIRED = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
GPU = Toleration(key="gpu")
IMAGES = (Container(name="a", image="one"), Container(name="b", image="two"))


@pytest.mark.parametrize(
    ("path", "pod", "value"),
    [
        ("metadata.namespace", Pod(), "default"),
        ("metadata.labels", make_pod(labels={"app": "web"}), {"app": "web"}),
        ("spec.tolerations", make_pod(tolerations=[GPU]), (GPU,)),
        ("spec.initContainers[*].image", make_pod(init_containers=IMAGES), ["one", "two"]),
        ("spec.affinity.nodeAffinity", make_pod(), None),
        (REQUIRED, make_pod(affinity=Affinity(pod_affinity=PodAffinity())), None),
        (REQUIRED, make_pod(affinity=Affinity(node_affinity=NodeAffinitySpec())), None),
        ("spec.volumes[*].image.reference", make_pod(claims=["data"]), [None]),
        (
            "spec.volumes[*].image",
            make_pod(volumes=[Volume(image=ImageSource(reference="x"))]),
            [ImageSource(reference="x")],
        ),
    ],
)
def test_a_path_reads_as_in_json(path: str, pod: Pod, value: object) -> None:
    assert reader(path)(pod) == value


def test_several_plugins_look_at_all_their_fields_once() -> None:
    assert union([]) == ()
    assert union([(), ("spec.tolerations",), ("spec.overhead", "spec.tolerations")]) == (
        "spec.overhead",
        "spec.tolerations",
    )
    inner = ("spec.containers[*].image", "spec.containers", "spec.containers[*].ports[*].hostIP")
    assert union([inner, ("spec.affinity.nodeAffinity",), ("spec.affinity",)]) == (
        "spec.affinity",
        "spec.containers",
    )


def test_who_does_not_say_or_knows_more_fields_looks_at_everything() -> None:
    assert union([("spec.tolerations",), None]) == SIGNATURE
    assert union([("spec.tolerations",), ("spec.ofTomorrow",)]) == (*SIGNATURE[:-1], "spec")


@given(
    pod=demanding_pods(),
    other=demanding_pods() | st.sampled_from(list(unlike_pods())),
    paths=st.lists(st.sampled_from(sorted(FIELDS)), max_size=4),
)
def test_a_pod_that_is_made_alike_reads_alike(pod: Pod, other: Pod, paths: list[str]) -> None:
    made = alike(pod, other, paths)
    for path in (*paths, "spec.schedulerName"):
        assert reader(path)(made) == reader(path)(pod), path


@given(pod=demanding_pods())
def test_all_else_stays_the_others(pod: Pod) -> None:
    made = alike(pod, FULLY_SPECIFIED_POD, ["spec.tolerations", "spec.affinity.nodeAffinity"])
    for path in ("metadata.labels", "spec.containers", "spec.affinity.podAffinity", "spec.volumes"):
        assert reader(path)(made) == reader(path)(FULLY_SPECIFIED_POD), path


def test_unlike_pods_differ_from_each_other_in_all_fields_of_the_signature() -> None:
    one, other = unlike_pods()
    tops = [path for path in FIELDS if path.count(".") == 1 and "[" not in path]
    for path in (*tops, "spec.affinity.nodeAffinity", "spec.affinity.podAffinity"):
        assert reader(path)(one) != reader(path)(other), path
