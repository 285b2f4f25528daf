import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import PluginFailedError, Rejection
from moorage.in_tree.filters.node_affinity import NodeAffinity
from moorage.models import (
    Affinity,
    NodeManifest,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Requirement,
)
from moorage.models import NodeAffinitySpec as Wishes
from moorage.rules import matches_node_selector
from moorage.testing import make_node, make_pod, run_filter
from tests.clusters import Cluster, clusters, labels, selectors

NOT_NAMED = Rejection("node(s) didn't satisfy plugin(s) [NodeAffinity]", unresolvable=True)
NO_MATCH = Rejection("node(s) didn't match Pod's node affinity/selector", unresolvable=True)

NODES = (
    make_node("n1", labels={"zone": "a", "size": "5"}),
    make_node("n2", labels={"zone": "b", "size": "10"}),
    make_node("n3", labels={"size": "many"}),
)


def requiring(*terms: NodeSelectorTerm, selector: dict[str, str] | None = None) -> Pod:
    wishes = Wishes(required=NodeSelector(node_selector_terms=terms))
    return make_pod(affinity=Affinity(node_affinity=wishes), node_selector=selector or {})


def label(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


def term(*conditions: Requirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=conditions)


def passing(pod: Pod) -> set[str]:
    verdicts = run_filter(NodeAffinity(), pod, *NODES)
    assert set(verdicts.values()) <= {None, NO_MATCH, NOT_NAMED}
    return {name for name, verdict in verdicts.items() if verdict is None}


def test_an_operator_that_does_not_exist_is_a_failure_not_a_no() -> None:
    with pytest.raises(PluginFailedError, match="operator 'Near' does not exist"):
        passing(requiring(term(label("zone", "Near", "a"))))


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
