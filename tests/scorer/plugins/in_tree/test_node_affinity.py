from hypothesis import given
from hypothesis import strategies as st

from moorage.in_tree.scores.node_affinity import NodeAffinity
from moorage.models import (
    Affinity,
    NodeManifest,
    NodeSelectorTerm,
    Pod,
    PreferredSchedulingTerm,
    Requirement,
)
from moorage.models import NodeAffinitySpec as Wishes
from moorage.rules import matches_node_selector_term
from moorage.testing import make_node, make_pod, run_score
from tests.clusters import Cluster, clusters, terms


def preferring(*wishes: PreferredSchedulingTerm) -> Pod:
    return make_pod(affinity=Affinity(node_affinity=Wishes(preferred=wishes)))


def wish(weight: int, key: str, *values: str) -> PreferredSchedulingTerm:
    condition = Requirement(key=key, operator="In", values=values)
    term = NodeSelectorTerm(match_expressions=(condition,))
    return PreferredSchedulingTerm(weight=weight, preference=term)


NODES = (
    make_node("n1", labels={"zone": "a", "disk": "ssd"}),
    make_node("n2", labels={"zone": "a"}),
    make_node("n3", labels={"disk": "ssd"}),
    make_node("n4"),
)


def test_scores_are_the_sums_of_weights_of_what_matches() -> None:
    # 5+2 = 7, 5, 2, 0, of at most 7: 100, 500//7, 200//7, 0
    scores = run_score(
        NodeAffinity(), preferring(wish(5, "zone", "a"), wish(2, "disk", "ssd")), *NODES
    )
    assert scores == {"n1": 100, "n2": 71, "n3": 28, "n4": 0}


def test_if_no_node_matches_all_have_0() -> None:
    scores = run_score(NodeAffinity(), preferring(wish(5, "zone", "x")), *NODES)
    assert scores == {"n1": 0, "n2": 0, "n3": 0, "n4": 0}


def test_empty_terms_match_no_node() -> None:
    empty = PreferredSchedulingTerm(weight=100)
    scores = run_score(NodeAffinity(), preferring(empty, wish(1, "zone", "a")), *NODES)
    assert scores == {"n1": 100, "n2": 100, "n3": 0, "n4": 0}


def test_pods_without_wishes_are_skipped() -> None:
    assert run_score(NodeAffinity(), make_pod(), *NODES) == {}
    assert run_score(NodeAffinity(), preferring(), *NODES) == {}


@given(
    clusters(),
    st.lists(
        st.builds(PreferredSchedulingTerm, weight=st.integers(0, 100), preference=terms),
        min_size=1,
        max_size=3,
    ),
)
def test_agrees_with_a_look_at_each_node(
    cluster: Cluster, wishes: list[PreferredSchedulingTerm]
) -> None:
    def total(node: NodeManifest) -> int:
        matching = (wish for wish in wishes if matches_node_selector_term(wish.preference, node))
        return sum(wish.weight for wish in matching)

    best = max(total(node) for node in cluster.nodes)
    expected = {node.name: 100 * total(node) // best if best else 0 for node in cluster.nodes}
    assert run_score(NodeAffinity(), preferring(*wishes), *cluster.nodes) == expected
