"""DaemonSets: which nodes get a pod."""

from tests.sandbox.controllers.support import Workloads
from tools.inprocess.api import Object


def places(workloads: Workloads) -> list[str]:
    """Return the nodes that pods were made for."""

    def place(pod: Object) -> str:
        affinity = pod["spec"]["affinity"]["nodeAffinity"]
        (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        (field,) = term["matchFields"]
        assert field["key"] == "metadata.name"
        (name,) = field["values"]
        return str(name)

    return sorted(map(place, workloads.pods().values()))


async def test_each_node_that_suits_gets_one_pod(workloads: Workloads) -> None:
    workloads.api.node("n2")
    workloads.create("DaemonSet")
    await workloads.until(lambda: places(workloads) == ["n1", "n2"])
    workloads.api.node("n3")
    await workloads.until(lambda: places(workloads) == ["n1", "n2", "n3"])
    workloads.api.delete("/api/v1/nodes/n2")
    await workloads.until(lambda: places(workloads) == ["n1", "n3"])
    await workloads.until_ready(2)
    await workloads.until_status("DaemonSet", desiredNumberScheduled=2, numberReady=2)


async def test_node_selectors_and_taints_are_heeded(workloads: Workloads) -> None:
    container = {"name": "main", "image": "web:1"}
    spec = {"containers": [container], "nodeSelector": {"disk": "ssd"}}
    workloads.create("DaemonSet", template={"metadata": {"labels": {"app": "web"}}, "spec": spec})
    await workloads.until_status("DaemonSet", desiredNumberScheduled=0)
    workloads.api.label("/api/v1/nodes/n1", disk="ssd")
    await workloads.until(lambda: places(workloads) == ["n1"])
    node = workloads.api.read("/api/v1/nodes/n1")
    taint = {"key": "own", "effect": "NoSchedule"}
    target = workloads.server.cluster.target("/api/v1/nodes/n1")
    workloads.server.cluster.update(target, {**node, "spec": {"taints": [taint]}})
    await workloads.until_pods(0)
