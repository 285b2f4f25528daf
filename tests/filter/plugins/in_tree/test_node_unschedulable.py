import pytest
from hypothesis import given

from moorage import Pod, Rejection
from moorage.in_tree.filters.node_unschedulable import NodeUnschedulable
from moorage.models import Taint, Toleration
from moorage.rules.taints import tolerates
from moorage.testing import make_node, make_pod, run_filter
from tests.clusters import Cluster, clusters, incoming_pods

CORDONED = Rejection("node(s) were unschedulable", unresolvable=True)
KEY = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("toleration", "verdict"),
    [
        pytest.param(None, CORDONED, id="no toleration"),
        pytest.param(Toleration(key=KEY, operator="Exists"), None, id="any effect"),
        pytest.param(Toleration(key=KEY, operator="Exists", effect="NoSchedule"), None, id="exact"),
        pytest.param(
            Toleration(key=KEY, operator="Exists", effect="NoExecute"), CORDONED, id="other effect"
        ),
        pytest.param(Toleration(key=KEY), None, id="Equal to the empty value"),
        pytest.param(Toleration(key=KEY, value="true"), CORDONED, id="Equal to another value"),
        pytest.param(Toleration(operator="Exists"), None, id="tolerates everything"),
        pytest.param(Toleration(key="gpu", operator="Exists"), CORDONED, id="another taint"),
    ],
)
def test_only_pods_that_tolerate_it_go_onto_cordoned_nodes(
    toleration: Toleration | None, verdict: Rejection | None
) -> None:
    pod = make_pod(tolerations=[toleration] if toleration else [])
    nodes = make_node("free"), make_node("cordoned", unschedulable=True)
    verdicts = run_filter(NodeUnschedulable(), pod, *nodes)
    assert verdicts == {"free": None, "cordoned": verdict}


@given(clusters(), incoming_pods())
def test_agrees_with_a_look_at_each_node(cluster: Cluster, pod: Pod) -> None:
    taint = Taint(key=KEY, effect="NoSchedule")
    tolerated = any(tolerates(toleration, taint) for toleration in pod.spec.tolerations)
    expected = {
        node.name: CORDONED if node.spec.unschedulable and not tolerated else None
        for node in cluster.nodes
    }
    assert run_filter(NodeUnschedulable(), pod, *cluster.nodes) == expected
