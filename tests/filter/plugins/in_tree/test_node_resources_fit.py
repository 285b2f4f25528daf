import pytest
from hypothesis import given

from moorage import DEVICE_CLASSES, Pod, Rejection
from moorage.in_tree.filters.node_resources_fit import NodeResourcesFit
from moorage.models import NodeManifest
from moorage.testing import make_node, make_pod, run_filter
from tests.clusters import GPU, Cluster, clusters, incoming_pods

# 4 cores, 8 GiB, 2 GPUs; 3 cores, 6 GiB and 1 GPU are taken: 1 core, 2 GiB and 1 GPU are free.
NODE = make_node("n1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "2", GPU: "2"})
OTHER = make_pod("other", node="n1", requests={"cpu": "3", "memory": "6Gi", GPU: "1"})


def resolvable(reason: str) -> Rejection:
    return Rejection(reason, unresolvable=False)


@pytest.mark.parametrize(
    ("requests", "verdict"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"cpu": "1", "memory": "2Gi", GPU: "1"}, None, id="exactly what is free"),
        pytest.param({"cpu": "1001m"}, resolvable("Insufficient cpu"), id="1m more than 1"),
        pytest.param({"memory": "2147483649"}, resolvable("Insufficient memory"), id="a byte more"),
        pytest.param({GPU: "2"}, resolvable(f"Insufficient {GPU}"), id="extended"),
        pytest.param(
            {GPU: "2", "memory": "3Gi", "cpu": "2"},
            resolvable(f"Insufficient cpu, Insufficient memory, Insufficient {GPU}"),
            id="all that is short, in kube-scheduler's order",
        ),
        pytest.param({"cpu": "4001m"}, Rejection("Insufficient cpu"), id="more than there is"),
        pytest.param(
            {"cpu": "2", GPU: "3"},
            Rejection(f"Insufficient cpu, Insufficient {GPU}"),
            id="one shortage without remedy spoils the rest",
        ),
        pytest.param(
            {"example.com/fpga": "1"}, Rejection("Insufficient example.com/fpga"), id="unknown"
        ),
        pytest.param({"example.com/fpga": "0"}, None, id="none of something unknown"),
    ],
)
def test_nodes_must_have_what_the_pod_requests(
    requests: dict[str, str], verdict: Rejection | None
) -> None:
    pod = make_pod(requests=requests)
    assert run_filter(NodeResourcesFit(), pod, NODE, pods=[OTHER]) == {"n1": verdict}


def test_a_node_with_as_many_pods_as_it_may_have_is_full() -> None:
    pods = [make_pod(name, node="n1") for name in ("a", "b")]
    verdicts = run_filter(NodeResourcesFit(), make_pod(), NODE, make_node("n2"), pods=pods)
    assert verdicts == {"n1": resolvable("Too many pods"), "n2": None}


@pytest.mark.parametrize(
    ("args", "verdict"),
    [
        pytest.param({"ignored_resources": (GPU,)}, None, id="by name"),
        pytest.param({"ignored_resource_groups": ("example.com",)}, None, id="by group"),
        pytest.param(
            {"ignored_resources": ("gpu",), "ignored_resource_groups": ("example",)},
            Rejection(f"Insufficient {GPU}"),
            id="others",
        ),
    ],
)
def test_ignored_extended_resources_are_left_to_others(
    args: dict[str, tuple[str, ...]], verdict: Rejection | None
) -> None:
    plugin = NodeResourcesFit(NodeResourcesFit.Args(**args))
    assert run_filter(plugin, make_pod(requests={GPU: "9"}), NODE) == {"n1": verdict}


def test_resources_of_kubernetes_cannot_be_ignored() -> None:
    plugin = NodeResourcesFit(NodeResourcesFit.Args(ignored_resources=("cpu",)))
    verdicts = run_filter(plugin, make_pod(requests={"cpu": "9"}), NODE)
    assert verdicts == {"n1": Rejection("Insufficient cpu")}


IMPLICIT = "deviceclass.resource.kubernetes.io/fast"
FPGA = "example.com/fpga"
CLASSES = {
    DEVICE_CLASSES: [
        {"metadata": {"name": "fast"}, "spec": {"extendedResourceName": FPGA}},
        {"metadata": {"name": "plain"}, "spec": {}},
    ]
}


@pytest.mark.parametrize(
    ("requests", "verdict"),
    [
        pytest.param({FPGA: "1"}, None, id="named by a class"),
        pytest.param({IMPLICIT: "1"}, None, id="the class's own name"),
        pytest.param({"deviceclass.resource.kubernetes.io/plain": "9"}, None, id="its only name"),
        pytest.param({GPU: "3"}, Rejection(f"Insufficient {GPU}"), id="backed by no class"),
        pytest.param(
            {"deviceclass.resource.kubernetes.io/slow": "1"},
            Rejection("Insufficient deviceclass.resource.kubernetes.io/slow"),
            id="of a class that does not exist",
        ),
        pytest.param(
            {FPGA: "1", "cpu": "2"}, resolvable("Insufficient cpu"), id="beside what is short"
        ),
    ],
)
def test_resources_that_a_device_class_backs_are_left_to_dynamic_resources(
    requests: dict[str, str], verdict: Rejection | None
) -> None:
    pod = make_pod(requests=requests)
    verdicts = run_filter(NodeResourcesFit(), pod, NODE, pods=[OTHER], objects=CLASSES)
    assert verdicts == {"n1": verdict}
    without = run_filter(NodeResourcesFit(), pod, NODE, pods=[OTHER])
    assert without["n1"] is not None


def test_a_node_that_offers_such_a_resource_itself_must_have_enough() -> None:
    nodes = [make_node(f"has-{n}", allocatable={FPGA: str(n)}) for n in range(4)]
    taken = make_pod("other", node="has-2", requests={FPGA: "1"})
    pod = make_pod(requests={FPGA: "2"})
    verdicts = run_filter(NodeResourcesFit(), pod, *nodes, pods=[taken], objects=CLASSES)
    assert verdicts == {
        "has-0": None,
        "has-1": Rejection(f"Insufficient {FPGA}"),
        "has-2": resolvable(f"Insufficient {FPGA}"),
        "has-3": None,
    }


@given(clusters(), incoming_pods())
def test_agrees_with_a_look_at_each_node(cluster: Cluster, pod: Pod) -> None:
    order = ["cpu", "memory", "ephemeral-storage", GPU, "hugepages-2Mi"]

    def verdict(node: NodeManifest) -> Rejection | None:
        others = cluster.pods_on(node)
        texts = ["Too many pods"] if len(others) >= node.allocatable["pods"] else []
        hopeless = False
        for resource in order:
            wanted, there = pod.requests.get(resource, 0), node.allocatable.get(resource, 0)
            taken = sum(other.requests.get(resource, 0) for other in others)
            if wanted and wanted > there - taken:
                texts.append(f"Insufficient {resource}")
                hopeless |= wanted > there
        return Rejection(", ".join(texts), unresolvable=hopeless) if texts else None

    expected = {node.name: verdict(node) for node in cluster.nodes}
    assert run_filter(NodeResourcesFit(), pod, *cluster.nodes, pods=cluster.pods) == expected
