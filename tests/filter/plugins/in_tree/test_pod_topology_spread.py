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
    Taint,
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
WEB = LabelSelector(match_labels={"app": "web"})


def constraint(key: str = "zone", skew: int = 1, **fields: object) -> TopologySpreadConstraint:
    spread = TopologySpreadConstraint(max_skew=skew, topology_key=key, label_selector=WEB)
    return replace(spread, **fields)


def spreading(*constraints: TopologySpreadConstraint, **fields: str) -> Pod:
    return make_pod("new", labels={"app": "web", **fields}, topology_spread=constraints)


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


def passing(pod: Pod, *pods: Pod, nodes: tuple[NodeManifest, ...] = NODES) -> set[str]:
    verdicts = run_filter(PodTopologySpread(), pod, *nodes, pods=pods)
    assert set(verdicts.values()) <= {None, SKEWED, UNLABELLED}
    return {name for name, verdict in verdicts.items() if verdict is None}


def test_domains_above_the_skew_are_resolvable_and_nodes_without_label_are_not() -> None:
    # a: 2 + 1 - 1 = 2 > 1; b: 1 + 1 - 1 = 1
    verdicts = run_filter(PodTopologySpread(), spreading(constraint()), *NODES, pods=PODS)
    assert verdicts == {"a1": SKEWED, "a2": SKEWED, "b1": None, "x": UNLABELLED}


@pytest.mark.parametrize(
    ("pod", "names"),
    [
        pytest.param(spreading(), {"a1", "a2", "b1", "x"}, id="no constraints"),
        pytest.param(
            spreading(constraint(when_unsatisfiable="ScheduleAnyway")),
            {"a1", "a2", "b1", "x"},
            id="soft constraints",
        ),
        # a: 2 + 1 - 1 = 2
        pytest.param(spreading(constraint(skew=2)), {"a1", "a2", "b1"}, id="a larger skew"),
        # a: 2 + 0 - 1 = 1
        pytest.param(
            make_pod("new", topology_spread=[constraint()]),
            {"a1", "a2", "b1"},
            id="a pod that does not match itself",
        ),
        # hostname: a1 2, a2 0, b1 1, x 0; minimum 0: a1 3, b1 2
        pytest.param(
            spreading(constraint("kubernetes.io/hostname")), {"a2", "x"}, id="by hostname"
        ),
        # Of nodes with both labels: zones a 2, b 1; hosts 2, 0, 1: b1 has 1 + 1 - 0 = 2
        pytest.param(
            spreading(constraint(skew=2), constraint("kubernetes.io/hostname")),
            {"a2"},
            id="all constraints must hold",
        ),
        # 2 domains of 3: the minimum is 0; a: 3, b: 2
        pytest.param(spreading(constraint(skew=2, min_domains=3)), {"b1"}, id="too few domains"),
        pytest.param(
            spreading(constraint(skew=2, min_domains=2)), {"a1", "a2", "b1"}, id="enough domains"
        ),
        # Nothing matches but the pod itself: 0 + 1 - 0
        pytest.param(
            spreading(constraint(label_selector=LabelSelector())),
            {"a1", "a2", "b1"},
            id="an empty selector counts no pods",
        ),
        pytest.param(
            spreading(constraint(label_selector=None)), {"a1", "a2", "b1"}, id="no selector"
        ),
    ],
)
def test_pods_go_where_the_skew_stays_small(pod: Pod, names: set[str]) -> None:
    assert passing(pod, *PODS) == names


def test_only_pods_of_the_namespace_that_stay_are_counted() -> None:
    leaving = web("p4", "b1")
    leaving = replace(
        leaving, metadata=replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )
    elsewhere = make_pod("p5", namespace="team", labels={"app": "web"}, node="b1")
    assert passing(spreading(constraint()), *PODS, leaving, elsewhere) == {"b1"}


def test_match_label_keys_count_pods_with_the_same_values_only() -> None:
    # version 2: a 0, b 1: a is at the minimum
    pods = (
        web("p1", "a1", version="1"),
        web("p2", "a1", version="1"),
        web("p3", "b1", version="2"),
    )
    spread = constraint(match_label_keys=("version", "unheard-of"))
    assert passing(spreading(spread, version="2"), *pods) == {"a1", "a2"}
    assert passing(spreading(spread), *pods) == {"b1"}


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        # Only b1 counts for the minimum, but a's count is then 0: 0 + 1 - 1 = 0; b: 1 + 1 - 1 = 1
        pytest.param("Honor", {"a1", "a2", "b1"}, id="selected nodes count"),
        # a 2, b 1: a has 2 + 1 - 1 = 2
        pytest.param("Ignore", {"b1"}, id="all nodes count"),
    ],
)
def test_nodes_that_the_pod_cannot_use_count_on_demand(policy: str, names: set[str]) -> None:
    pod = make_pod(
        "new",
        labels={"app": "web"},
        node_selector={"zone": "b"},
        topology_spread=[constraint(node_affinity_policy=policy)],
    )
    assert passing(pod, *PODS) == names


def test_tainted_nodes_count_unless_the_policy_says_otherwise() -> None:
    # Zone c is empty but tainted: with it the minimum is 0 and only c has room.
    tainted = make_node("c1", labels={"zone": "c"}, taints=[Taint(key="x", effect="NoSchedule")])
    nodes = (*NODES, tainted)
    assert passing(spreading(constraint()), *PODS, nodes=nodes) == {"c1"}
    honoring = constraint(node_taints_policy="Honor")
    assert passing(spreading(honoring), *PODS, nodes=nodes) == {"b1", "c1"}
    tolerant = make_pod(
        "new",
        labels={"app": "web"},
        topology_spread=[honoring],
        tolerations=[Toleration(key="x", operator="Exists")],
    )
    assert passing(tolerant, *PODS, nodes=nodes) == {"c1"}


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
