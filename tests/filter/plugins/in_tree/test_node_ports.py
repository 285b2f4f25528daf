import pytest
from hypothesis import given

from moorage import Pod, Rejection
from moorage.in_tree.filters.node_ports import NodePorts
from moorage.models import Container, ContainerPort, NodeManifest
from moorage.testing import make_node, make_pod, run_filter
from tests.clusters import Cluster, clusters, incoming_pods

TAKEN = Rejection("node(s) didn't have free ports for the requested pod ports", unresolvable=False)


def taking(name: str, port: int, ip: str = "", protocol: str = "TCP", node: str = "") -> Pod:
    taken = ContainerPort(host_port=port, host_ip=ip, protocol=protocol)
    return make_pod(name, node=node, containers=[Container(ports=(taken,))])


@pytest.mark.parametrize(
    ("wanted", "verdict"),
    [
        pytest.param(make_pod("p"), None, id="no ports"),
        pytest.param(taking("p", 80), TAKEN, id="same port"),
        pytest.param(taking("p", 81), None, id="other port"),
        pytest.param(taking("p", 80, protocol="UDP"), None, id="other protocol"),
        pytest.param(taking("p", 80, "10.0.0.1"), TAKEN, id="same address"),
        pytest.param(taking("p", 80, "10.0.0.2"), None, id="other address"),
        pytest.param(taking("p", 80, "0.0.0.0"), TAKEN, id="all addresses"),
        pytest.param(taking("p", 80, "::"), None, id="kube-scheduler takes :: for one address"),
    ],
)
def test_pods_go_where_their_host_ports_are_free(wanted: Pod, verdict: Rejection | None) -> None:
    other = taking("other", 80, "10.0.0.1", node="busy")
    nodes = make_node("busy"), make_node("idle")
    verdicts = run_filter(NodePorts(), wanted, *nodes, pods=[other])
    assert verdicts == {"busy": verdict, "idle": None}


def test_a_port_taken_without_an_address_conflicts_with_all() -> None:
    other = taking("other", 80, node="n1")
    verdicts = run_filter(NodePorts(), taking("p", 80, "::"), make_node("n1"), pods=[other])
    assert verdicts == {"n1": TAKEN}


@given(clusters(), incoming_pods())
def test_agrees_with_a_look_at_each_node(cluster: Cluster, pod: Pod) -> None:
    def clash(one: ContainerPort, other: ContainerPort) -> bool:
        ips = {one.host_ip or "0.0.0.0", other.host_ip or "0.0.0.0"}
        same = (one.protocol, one.host_port) == (other.protocol, other.host_port)
        return same and (len(ips) == 1 or "0.0.0.0" in ips)

    def verdict(node: NodeManifest) -> Rejection | None:
        taken = [port for other in cluster.pods_on(node) for port in other.host_ports]
        return TAKEN if any(clash(a, b) for a in pod.host_ports for b in taken) else None

    expected = {node.name: verdict(node) for node in cluster.nodes}
    assert run_filter(NodePorts(), pod, *cluster.nodes, pods=cluster.pods) == expected
