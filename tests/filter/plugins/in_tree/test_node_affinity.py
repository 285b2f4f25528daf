import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import PluginFailedError, Rejection
from moorage.in_tree.filters.node_affinity import NodeAffinity
from moorage.models import Affinity, NodeManifest, NodeSelector, NodeSelectorTerm, Requirement
from moorage.models import NodeAffinitySpec as Wishes
from moorage.rules import matches_node_selector
from moorage.testing import make_node, make_pod, run_filter
from tests.clusters import Cluster, clusters, labels, selectors

NOT_NAMED = Rejection("node(s) didn't satisfy plugin(s) [NodeAffinity]", unresolvable=True)
NO_MATCH = Rejection("node(s) didn't match Pod's node affinity/selector", unresolvable=True)


def test_an_operator_that_does_not_exist_is_a_failure_not_a_no() -> None:
    near = Requirement(key="zone", operator="Near", values=("a",))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(near,)),))
    pod = make_pod(affinity=Affinity(node_affinity=Wishes(required=required)))
    with pytest.raises(PluginFailedError, match="operator 'Near' does not exist"):
        run_filter(NodeAffinity(), pod, make_node(labels={"zone": "a"}))


@given(clusters(), labels, st.none() | selectors)
def test_agrees_with_a_look_at_each_node(
    cluster: Cluster, selector: dict[str, str], required: NodeSelector | None
) -> None:
    affinity = Affinity(node_affinity=Wishes(required=required))
    pod = make_pod(node_selector=selector, affinity=affinity)

    def matches(node: NodeManifest) -> bool:
        return selector.items() <= node.metadata.labels.items() and (
            required is None or matches_node_selector(required, node)
        )

    wanted = [_names(term) for term in (required.node_selector_terms if required else ())]

    def reason(node: NodeManifest) -> Rejection:
        if not wanted or None in wanted or any(node.name in names for names in wanted if names):
            return NO_MATCH
        return NOT_NAMED

    expected = {node.name: None if matches(node) else reason(node) for node in cluster.nodes}
    assert run_filter(NodeAffinity(), pod, *cluster.nodes) == expected


def _names(term: NodeSelectorTerm) -> set[str] | None:
    """Return the names that a term leaves, None if it says nothing of names that are wanted."""
    wanted = [r for r in term.match_fields if r.key == "metadata.name" and r.operator == "In"]
    listed = [set(r.values) for r in wanted]
    return set.intersection(*listed) if listed else None
