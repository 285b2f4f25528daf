import pytest

from moorage import DEVICE_CLASSES, Rejection
from moorage.in_tree.filters.node_resources_fit import NodeResourcesFit
from moorage.testing import make_node, make_pod, run_filter
from tests.clusters import GPU

# 4 cores, 8 GiB, 2 GPUs; 3 cores, 6 GiB and 1 GPU are taken: 1 core, 2 GiB and 1 GPU are free.
NODE = make_node("n1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "2", GPU: "2"})
OTHER = make_pod("other", node="n1", requests={"cpu": "3", "memory": "6Gi", GPU: "1"})


def resolvable(reason: str) -> Rejection:
    return Rejection(reason, unresolvable=False)


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
