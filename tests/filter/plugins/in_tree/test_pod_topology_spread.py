import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import Pod, Rejection
from moorage.in_tree.filters.pod_topology_spread import PodTopologySpread
from moorage.models import (
    LabelSelector,
    NodeManifest,
    OwnerReference,
    Requirement,
    Toleration,
    TopologySpreadConstraint,
)
from moorage.rules import matches_labels
from moorage.rules.taints import tolerates
from moorage.testing import make_node, make_pod, run_filter
from moorage_host.policy.checks import check_arguments
from tests.clusters import Cluster, clusters, labels, pod_labels, spread_constraints, tolerations

SKEWED = Rejection("node(s) didn't match pod topology spread constraints", unresolvable=False)
UNLABELLED = Rejection(
    "node(s) didn't match pod topology spread constraints (missing required label)",
    unresolvable=True,
)


def web(name: str, node: str, **fields: str) -> Pod:
    return make_pod(name, labels={"app": "web", **fields}, node=node)


NODES = (
    make_node("a1", labels={"zone": "a"}),
    make_node("a2", labels={"zone": "a"}),
    make_node("b1", labels={"zone": "b"}),
    make_node("x"),
)
# Zone a: 2, zone b: 1. The pod matches itself, so it makes them 3 and 2; the minimum is 1.
PODS = (web("p1", "a1"), web("p2", "a1"), web("p3", "b1"))


def test_match_label_keys_count_pods_with_the_same_values_only() -> None:
    """In what is recorded the API server has made them part of the selector."""
    # version 2: a 0, b 1: a is at the minimum
    versions = {"p1": ("a1", "1"), "p2": ("a1", "1"), "p3": ("b1", "2")}
    pods = [web(name, node, version=version) for name, (node, version) in versions.items()]
    spread = TopologySpreadConstraint(
        max_skew=1,
        topology_key="zone",
        label_selector=LabelSelector(match_labels={"app": "web"}),
        match_label_keys=("version", "unheard-of"),
    )
    for own, passing in (({"version": "2"}, {"a1", "a2"}), ({}, {"b1"})):
        pod = make_pod("new", labels={"app": "web", **own}, topology_spread=[spread])
        verdicts = run_filter(PodTopologySpread(), pod, *NODES, pods=pods)
        assert {name for name, verdict in verdicts.items() if verdict is None} == passing


def test_default_constraints_hold_for_pods_of_a_replica_set_without_their_own() -> None:
    args = {
        "defaultingType": "List",
        "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
    }
    plugin = PodTopologySpread(check_arguments(args, PodTopologySpread.Args, "args"))
    owner = OwnerReference(kind="ReplicaSet", name="web", controller=True)
    pod = make_pod("new", labels={"app": "web"}, owner=owner)
    verdicts = run_filter(plugin, pod, *NODES, pods=PODS)
    assert verdicts == {"a1": SKEWED, "a2": SKEWED, "b1": None, "x": UNLABELLED}
    bare = make_pod("new", labels={"app": "web"})
    assert set(run_filter(plugin, bare, *NODES, pods=PODS).values()) == {None}


def test_default_constraints_need_the_type_list() -> None:
    args = {
        "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ]
    }
    with pytest.raises(Exception, match="defaultConstraints need defaultingType: List"):
        check_arguments(args, PodTopologySpread.Args, "args")


@given(
    clusters(),
    st.lists(spread_constraints, min_size=1, max_size=2),
    pod_labels,
    st.lists(tolerations, max_size=1),
    st.just({}) | labels,
)
def test_agrees_with_a_look_at_each_node(
    cluster: Cluster,
    constraints: list[TopologySpreadConstraint],
    own: dict[str, str],
    tolerated: list[Toleration],
    selector: dict[str, str],
) -> None:
    pod = make_pod(
        "new",
        labels=own,
        tolerations=tolerated,
        node_selector=selector,
        topology_spread=constraints,
    )
    hard = [c for c in constraints if c.when_unsatisfiable == "DoNotSchedule"]

    def matches(spread: TopologySpreadConstraint, other: dict[str, str]) -> bool:
        keys = [
            Requirement(key=k, operator="In", values=(own[k],))
            for k in spread.match_label_keys
            if k in own
        ]
        wanted = spread.label_selector
        if wanted is None:
            return False
        merged = replace(wanted, match_expressions=(*wanted.match_expressions, *keys))
        return matches_labels(merged, other)

    def is_empty(spread: TopologySpreadConstraint) -> bool:
        keyed = any(key in own for key in spread.match_label_keys)
        return spread.label_selector == LabelSelector() and not keyed

    def eligible(spread: TopologySpreadConstraint, node: NodeManifest) -> bool:
        chosen = selector.items() <= node.metadata.labels.items()
        repelled = any(
            taint.effect != "PreferNoSchedule"
            and not any(tolerates(toleration, taint) for toleration in tolerated)
            for taint in node.spec.taints
        )
        return (chosen or spread.node_affinity_policy == "Ignore") and not (
            repelled and spread.node_taints_policy == "Honor"
        )

    def counts(spread: TopologySpreadConstraint) -> dict[str, int]:
        found: dict[str, int] = {}
        for node in cluster.nodes:
            there = node.metadata.labels
            if all(c.topology_key in there for c in hard) and eligible(spread, node):
                domain = there[spread.topology_key]
                found[domain] = found.get(domain, 0) + sum(
                    not is_empty(spread)
                    and other.namespace == "default"
                    and not other.is_terminating
                    and matches(spread, dict(other.labels))
                    for other in cluster.pods_on(node)
                )
        return found

    def verdict(node: NodeManifest) -> Rejection | None:
        for spread in hard:
            domain = node.metadata.labels.get(spread.topology_key)
            if domain is None:
                return UNLABELLED
            found = counts(spread)
            enough = len(found) >= (spread.min_domains or 1)
            least = min(found.values()) if enough else 0
            if found.get(domain, 0) + matches(spread, own) - least > spread.max_skew:
                return SKEWED
        return None

    expected = {node.name: verdict(node) for node in cluster.nodes}
    assert run_filter(PodTopologySpread(), pod, *cluster.nodes, pods=cluster.pods) == expected
