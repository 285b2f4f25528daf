"""Gang places groups whole or not at all."""

from moorage import NodeManifest, Pod, Rejection
from moorage.testing import make_node, make_pod, run_group
from services.filter.plugins.gang import Gang

GPU = "example.com/gpu"


def gpus(name: str, count: int, **labels: str) -> NodeManifest:
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "10", GPU: str(count)}
    return make_node(name, allocatable=allocatable, labels=labels)


def member(name: str, group: str = "train", size: str = "4", **labels: str) -> Pod:
    labels = {"moorage.io/group": group, "moorage.io/group-size": size, **labels}
    return make_pod(name, labels=labels, requests={GPU: "1"})


def members(count: int, group: str = "train", **more: str) -> list[Pod]:
    return [member(f"{group}-{i}", group, str(count), **more) for i in range(count)]


def test_a_group_that_fits_gets_a_node_for_each_pod() -> None:
    first, *others = members(4)
    placed = run_group(Gang(), first, gpus("n1", 3), gpus("n2", 1), waiting=others)
    assert placed == {"train-0": "n1", "train-1": "n1", "train-2": "n1", "train-3": "n2"}


def test_of_a_group_that_does_not_fit_no_pod_gets_a_node() -> None:
    first, *others = members(4)
    placed = run_group(Gang(), first, gpus("n1", 2), gpus("n2", 1), waiting=others)
    assert placed == Rejection("pods of the group found no nodes", unresolvable=False)


def test_a_group_waits_for_pods_that_are_missing() -> None:
    first, *others = members(4)
    placed = run_group(Gang(), first, gpus("n1", 8), waiting=others[:2])
    assert placed == Rejection("pods of the group are missing", unresolvable=False)


def test_a_pod_without_a_group_is_none_of_its_business() -> None:
    assert run_group(Gang(), make_pod("single"), gpus("n1", 1)) is None
