"""Plugins that see one node at a time agree with a look at each; what they say is recorded too."""

from collections.abc import Callable

import pytest
from hypothesis import given

from moorage import FilterPlugin, Pod, Rejection
from moorage.in_tree.filters.node_ports import NodePorts
from moorage.in_tree.filters.node_resources_fit import NodeResourcesFit
from moorage.in_tree.filters.node_unschedulable import NodeUnschedulable
from moorage.in_tree.filters.taint_toleration import TaintToleration
from moorage.models import ContainerPort, NodeManifest, Taint, Toleration
from moorage.rules.taints import tolerates
from moorage.testing import make_node, make_pod, run_filter
from tests.clusters import GPU, Cluster, clusters, incoming_pods

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def ports(pod: Pod, node: NodeManifest, others: list[Pod]) -> Rejection | None:
    def clash(one: ContainerPort, other: ContainerPort) -> bool:
        ips = {one.host_ip or "0.0.0.0", other.host_ip or "0.0.0.0"}
        same = (one.protocol, one.host_port) == (other.protocol, other.host_port)
        return same and (len(ips) == 1 or "0.0.0.0" in ips)

    taken = [port for other in others for port in other.host_ports]
    if any(clash(a, b) for a in pod.host_ports for b in taken):
        text = "node(s) didn't have free ports for the requested pod ports"
        return Rejection(text, unresolvable=False)
    return None


def resources(pod: Pod, node: NodeManifest, others: list[Pod]) -> Rejection | None:
    texts = ["Too many pods"] if len(others) >= node.allocatable["pods"] else []
    hopeless = False
    for resource in ("cpu", "memory", "ephemeral-storage", GPU, "hugepages-2Mi"):
        wanted, there = pod.requests.get(resource, 0), node.allocatable.get(resource, 0)
        taken = sum(other.requests.get(resource, 0) for other in others)
        if wanted and wanted > there - taken:
            texts.append(f"Insufficient {resource}")
            hopeless |= wanted > there
    return Rejection(", ".join(texts), unresolvable=hopeless) if texts else None


def cordon(pod: Pod, node: NodeManifest, others: list[Pod]) -> Rejection | None:
    if not node.spec.unschedulable or any(
        tolerates(t, UNSCHEDULABLE) for t in pod.spec.tolerations
    ):
        return None
    return Rejection("node(s) were unschedulable")


def taints(pod: Pod, node: NodeManifest, others: list[Pod]) -> Rejection | None:
    for taint in node.spec.taints:
        tolerated = any(tolerates(toleration, taint) for toleration in pod.spec.tolerations)
        if taint.effect != "PreferNoSchedule" and not tolerated:
            return Rejection("node(s) had untolerated taint(s)")
    return None


@pytest.mark.parametrize(("effect", "passes"), [("NoSchedule", True), ("NoExecute", False)])
def test_only_pods_that_tolerate_it_go_onto_cordoned_nodes(effect: str, passes: bool) -> None:
    toleration = Toleration(key=UNSCHEDULABLE.key, operator="Exists", effect=effect)
    node, pod = make_node("n", unschedulable=True), make_pod(tolerations=[toleration])
    assert (run_filter(NodeUnschedulable(), pod, node)["n"] is None) is passes


@pytest.mark.parametrize(
    ("plugin", "verdict"),
    [
        (NodePorts(), ports),
        (NodeResourcesFit(), resources),
        (NodeUnschedulable(), cordon),
        (TaintToleration(), taints),
    ],
)
@given(cluster=clusters(), pod=incoming_pods())
def test_agrees_with_a_look_at_each_node(
    cluster: Cluster,
    pod: Pod,
    plugin: FilterPlugin,
    verdict: Callable[[Pod, NodeManifest, list[Pod]], Rejection | None],
) -> None:
    expected = {node.name: verdict(pod, node, cluster.pods_on(node)) for node in cluster.nodes}
    assert run_filter(plugin, pod, *cluster.nodes, pods=cluster.pods) == expected
