import asyncio
import math

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import Pod
from moorage.in_tree.scores.pod_topology_spread import PodTopologySpread
from moorage.models import LabelSelector, NodeManifest, OwnerReference, TopologySpreadConstraint
from moorage.rules import matches_labels
from moorage.testing import make_node, make_nodes, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from tests.clusters import Cluster, clusters, pod_labels, spread_constraints

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB = LabelSelector(match_labels={"app": "web"})
REPLICA_SET = OwnerReference(kind="ReplicaSet", name="web", controller=True)

NODES = (
    make_node("a1", labels={ZONE: "a"}),
    make_node("a2", labels={ZONE: "a"}),
    make_node("b1", labels={ZONE: "b"}),
    make_node("x"),
)
# Hosts 2, 1, 1, 1; zones a 3, b 1
PODS = tuple(
    make_pod(f"p{i}", labels={"app": "web"}, node=node)
    for i, node in enumerate(("a1", "a1", "a2", "b1", "x"))
)


def soft(key: str, skew: int = 1, **fields: object) -> TopologySpreadConstraint:
    spread = TopologySpreadConstraint(
        max_skew=skew,
        topology_key=key,
        label_selector=WEB,
        when_unsatisfiable="ScheduleAnyway",
    )
    return replace(spread, **fields)


def spreading(*constraints: TopologySpreadConstraint) -> Pod:
    return make_pod("new", labels={"app": "web"}, topology_spread=constraints)


def test_pods_of_a_replica_set_are_spread_by_default() -> None:
    # Hosts: ln(4+2) = 1.792 and + 2; zones: a, b and none, ln(3+2) = 1.609 and + 4, not for x.
    # a1 3.58 + 2 + 4.83 + 4 = 14.41 -> 14; a2 1.79 + 2 + 4.83 + 4 = 12.62 -> 13;
    # b1 1.79 + 2 + 1.61 + 4 = 9.40 -> 9; x 1.79 + 2 = 3.79 -> 4
    # 100 * (14 + 4 - n) // 14: 28, 35, 64, 100
    pod = make_pod("new", labels={"app": "web"}, owner=REPLICA_SET)
    scores = run_score(PodTopologySpread(), pod, *NODES, pods=PODS)
    assert scores == {"a1": 28, "a2": 35, "b1": 64, "x": 100}


def test_what_distinguishes_pods_of_a_stateful_set_does_not_count() -> None:
    name = "statefulset.kubernetes.io/pod-name"
    owner = OwnerReference(kind="StatefulSet", name="db", controller=True)
    there = make_pod("db-0", labels={"app": "db", name: "db-0"}, owner=owner, node="a1")
    pod = make_pod("db-1", labels={"app": "db", name: "db-1"}, owner=owner)
    scores = run_score(PodTopologySpread(), pod, *NODES[:2], pods=[there])
    # Zone, both: 1 * ln 3 + 4 = 5.10; hosts: ln 4 = 1.386 + 2: 8.48 -> 8, without the pod 7.10 -> 7
    # 100 * (8 + 7 - n) // 8: 87, 100
    assert scores == {"a1": 87, "a2": 100}


def test_a_list_of_defaults_replaces_those_of_the_system_and_wants_all_labels() -> None:
    args = {
        "defaultingType": "List",
        "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
        ],
    }
    plugin = PodTopologySpread(check_arguments(args, PodTopologySpread.Args, "args"))
    pod = make_pod("new", labels={"app": "web"}, owner=REPLICA_SET)
    scores = run_score(plugin, pod, *NODES, pods=PODS)
    assert scores == {"a1": 25, "a2": 25, "b1": 100, "x": 0}
    empty = PodTopologySpread(PodTopologySpread.Args(defaulting_type="List"))
    assert run_score(empty, pod, *NODES, pods=PODS) == {}


def test_pods_on_nodes_that_were_rejected_count_in_their_domain() -> None:
    # Only a2 and b1 are scored; a1's two pods still make zone a 3.
    nodes, pod = make_nodes(*NODES, pods=PODS)[1:3], spreading(soft(ZONE))
    plugin = PodTopologySpread()
    asyncio.run(plugin.prepare(pod, nodes))
    assert plugin.score(pod, nodes).tolist() == [round(3 * math.log(4)), round(math.log(4))]


def test_domains_are_those_of_all_nodes_also_where_others_score_some_of_them() -> None:
    nodes, pod = make_nodes(*NODES, pods=PODS), spreading(soft(ZONE), soft(HOSTNAME))
    plugin = PodTopologySpread()
    asyncio.run(plugin.prepare(pod, nodes))
    whole = plugin.score(pod, nodes).tolist()
    assert [*plugin.score(pod, nodes[:1]), *plugin.score(pod, nodes[1:])] == whole


@given(clusters(), st.lists(spread_constraints, min_size=1, max_size=2), pod_labels)
def test_agrees_with_a_look_at_each_node(
    cluster: Cluster, constraints: list[TopologySpreadConstraint], labels: dict[str, str]
) -> None:
    wanted = [
        replace(
            c, match_label_keys=(), node_taints_policy="Ignore", when_unsatisfiable="ScheduleAnyway"
        )
        for c in constraints
    ]
    keys = [c.topology_key for c in wanted]
    scored = [n for n in cluster.nodes if all(key in n.metadata.labels for key in keys)]

    def pods(spread: TopologySpreadConstraint, node: NodeManifest) -> int:
        return sum(
            spread.label_selector != LabelSelector()
            and other.namespace == "default"
            and not other.is_terminating
            and matches_labels(spread.label_selector, other.labels)
            for other in cluster.pods_on(node)
        )

    def cost(node: NodeManifest) -> int:
        total = 0.0
        for spread in wanted:
            domain = node.metadata.labels[spread.topology_key]
            near = [n for n in scored if n.metadata.labels[spread.topology_key] == domain]
            domains = {n.metadata.labels[spread.topology_key] for n in scored}
            size = len(scored) if spread.topology_key == HOSTNAME else len(domains)
            count = sum(pods(spread, other) for other in near)
            total += count * math.log(size + 2) + (spread.max_skew - 1)
        return math.floor(total + 0.5)

    costs = {node.name: cost(node) for node in scored}
    high, low = max(costs.values(), default=0), min(costs.values(), default=0)
    expected = {
        node.name: 0
        if node.name not in costs
        else (100 * (high + low - costs[node.name]) // high if high else 100)
        for node in cluster.nodes
    }
    pod = make_pod("new", labels=labels, topology_spread=wanted)
    assert run_score(PodTopologySpread(), pod, *cluster.nodes, pods=cluster.pods) == expected
