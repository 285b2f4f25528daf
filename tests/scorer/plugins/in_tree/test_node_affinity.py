from hypothesis import given
from hypothesis import strategies as st

from moorage.in_tree.scores.node_affinity import NodeAffinity
from moorage.models import Affinity, NodeManifest, PreferredSchedulingTerm
from moorage.models import NodeAffinitySpec as Wishes
from moorage.rules import matches_node_selector_term
from moorage.testing import make_pod, run_score
from tests.clusters import Cluster, clusters, terms


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

    pod = make_pod(affinity=Affinity(node_affinity=Wishes(preferred=tuple(wishes))))
    best = max(total(node) for node in cluster.nodes)
    expected = {node.name: 100 * total(node) // best if best else 0 for node in cluster.nodes}
    assert run_score(NodeAffinity(), pod, *cluster.nodes) == expected
