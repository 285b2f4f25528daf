from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Pod
from moorage.in_tree.scores.inter_pod_affinity import InterPodAffinity
from moorage.models import (
    Affinity,
    LabelSelector,
    NodeManifest,
    PodAffinity,
    PodAffinityTerm,
    WeightedPodAffinityTerm,
)
from moorage.rules import selects_pod
from moorage.testing import make_node, make_pod, run_score
from tests.clusters import NAMESPACES, Cluster, affinities, clusters, pod_labels

HOSTNAME = "kubernetes.io/hostname"

NODES = (
    make_node("a1", labels={"zone": "a"}),
    make_node("a2", labels={"zone": "a"}),
    make_node("b1", labels={"zone": "b"}),
    make_node("x"),
)


def wish(weight: int, key: str, **labels: str) -> WeightedPodAffinityTerm:
    return WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term(key, **labels))


def term(key: str, **labels: str) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key=key)


def wishing(
    *near: WeightedPodAffinityTerm, far: tuple[WeightedPodAffinityTerm, ...] = ()
) -> Affinity:
    return Affinity(
        pod_affinity=PodAffinity(preferred=near), pod_anti_affinity=PodAffinity(preferred=far)
    )


def requiring(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(required=terms))


WEB = tuple(
    make_pod(f"web-{i}", labels={"app": "web"}, node=node)
    for i, node in enumerate(("a1", "a1", "b1"))
)


@pytest.mark.parametrize(
    ("affinity", "scores"),
    [
        # Zone a has 2 web pods, b 1: 20, 20, 10, 0 of a span of 20
        pytest.param(
            wishing(wish(10, "zone", app="web")),
            {"a1": 100, "a2": 100, "b1": 50, "x": 0},
            id="near",
        ),
        # -20, -20, -10, 0
        pytest.param(
            wishing(far=(wish(10, "zone", app="web"),)),
            {"a1": 0, "a2": 0, "b1": 50, "x": 100},
            id="far",
        ),
        # 20 - 6 = 14, 20, 10 - 3 = 7, 0 of a span of 20: 70, 100, 35, 0
        pytest.param(
            wishing(wish(10, "zone", app="web"), far=(wish(3, HOSTNAME, app="web"),)),
            {"a1": 70, "a2": 100, "b1": 35, "x": 0},
            id="in the zone but not on the node",
        ),
        # 2, 0, 1, 0, and for zone a 3 * 2, b 3: 8, 6, 4, 0: 100, 75, 50, 0
        pytest.param(
            wishing(wish(1, HOSTNAME, app="web"), wish(3, "zone", app="web")),
            {"a1": 100, "a2": 75, "b1": 50, "x": 0},
            id="two wishes",
        ),
        pytest.param(wishing(wish(10, "zone", app="db")), {}, id="nobody there: skipped"),
        pytest.param(wishing(wish(10, "rack", app="web")), {}, id="no such label: skipped"),
        pytest.param(None, {}, id="no wishes: skipped"),
    ],
)
def test_own_wishes_count_once_for_each_pod_in_the_domain(
    affinity: Affinity | None, scores: dict[str, float]
) -> None:
    pod = make_pod("new", affinity=affinity)
    assert run_score(InterPodAffinity(), pod, *NODES, pods=WEB) == scores


def test_nodes_that_are_all_the_same_get_0() -> None:
    pod = make_pod("new", affinity=wishing(wish(10, "zone", app="web")))
    assert run_score(InterPodAffinity(), pod, *NODES[:2], pods=WEB[:1]) == {"a1": 0, "a2": 0}


def test_wishes_and_requirements_of_running_pods_count_too() -> None:
    # a: +5 for the wish; b1: 1 for the requirement, by default; x: -2. Span 7: 100, 100, 42.8, 0
    pods = [
        make_pod("p1", node="a1", affinity=wishing(wish(5, "zone", app="web"))),
        make_pod("p2", node="b1", affinity=requiring(term("zone", app="web"))),
        make_pod("p3", node="x", affinity=wishing(far=(wish(2, HOSTNAME, app="web"),))),
        make_pod("p4", node="x", affinity=wishing(wish(99, HOSTNAME, app="db"))),
    ]
    pod = make_pod("new", labels={"app": "web"})
    scores = run_score(InterPodAffinity(), pod, *NODES, pods=pods)
    assert scores == {"a1": 100, "a2": 100, "b1": 42, "x": 0}
    # The requirement weighs 12: 5, 5, 12, -2 of a span of 14: 50, 50, 100, 0
    args = InterPodAffinity.Args(hard_pod_affinity_weight=12)
    scores = run_score(InterPodAffinity(args), pod, *NODES, pods=pods)
    assert scores == {"a1": 50, "a2": 50, "b1": 100, "x": 0}
    # It weighs nothing: 5, 5, 0, -2 of a span of 7: 100, 100, 28.6, 0
    args = InterPodAffinity.Args(hard_pod_affinity_weight=0)
    scores = run_score(InterPodAffinity(args), pod, *NODES, pods=pods)
    assert scores == {"a1": 100, "a2": 100, "b1": 28, "x": 0}


def test_running_pods_can_be_ignored_for_pods_without_wishes() -> None:
    running = make_pod("p1", node="a1", affinity=wishing(wish(5, "zone", app="web")))
    plugin = InterPodAffinity(InterPodAffinity.Args(ignore_preferred_terms_of_existing_pods=True))
    pod = make_pod("new", labels={"app": "web"})
    assert run_score(plugin, pod, *NODES, pods=[running]) == {}
    # One wish of one's own, and they count: zone a 5, x 1
    other = make_pod("db", node="x", labels={"app": "db"})
    pod = make_pod("new", labels={"app": "web"}, affinity=wishing(wish(1, HOSTNAME, app="db")))
    scores = run_score(plugin, pod, *NODES, pods=[running, other])
    assert scores == {"a1": 100, "a2": 100, "b1": 0, "x": 20}


@given(clusters(), affinities, pod_labels, st.sampled_from(NAMESPACES), st.sampled_from((0, 1, 30)))
def test_agrees_with_a_look_at_each_node(
    cluster: Cluster,
    affinity: Affinity | None,
    labels: dict[str, str],
    namespace: str,
    hard: int,
) -> None:
    pod = make_pod("new", namespace=namespace, labels=labels, affinity=affinity)

    def wishes(owner: Pod, *, with_required: bool) -> Iterator[tuple[int, PodAffinityTerm]]:
        of = owner.spec.affinity or Affinity()
        for sign, side in ((1, of.pod_affinity), (-1, of.pod_anti_affinity)):
            for each in side.preferred if side else ():
                yield sign * each.weight, each.pod_affinity_term
            if side and sign == 1 and with_required and hard:
                yield from ((hard, each) for each in side.required)

    def relations() -> Iterator[tuple[int, str, str]]:
        """Weight, key and value of all that attracts or repels."""
        for node in cluster.nodes:
            for other in cluster.pods_on(node):
                found = [
                    (weight, t)
                    for weight, t in wishes(pod, with_required=False)
                    if selects_pod(t, namespace, other)
                ] + [
                    (weight, t)
                    for weight, t in wishes(other, with_required=True)
                    if selects_pod(t, other.namespace, pod)
                ]
                for weight, t in found:
                    if t.topology_key in node.metadata.labels:
                        yield weight, t.topology_key, node.metadata.labels[t.topology_key]

    found = list(relations())

    def total(node: NodeManifest) -> int:
        return sum(weight for weight, key, value in found if node.metadata.labels.get(key) == value)

    totals = {node.name: total(node) for node in cluster.nodes}
    low, high = min(totals.values()), max(totals.values())
    expected = {
        name: int(100.0 * ((value - low) / (high - low))) if high > low else 0
        for name, value in totals.items()
    }
    plugin = InterPodAffinity(InterPodAffinity.Args(hard_pod_affinity_weight=hard))
    scores = run_score(plugin, pod, *cluster.nodes, pods=cluster.pods)
    assert scores == (expected if found else {})
