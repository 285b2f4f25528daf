"""Asks a real kube-scheduler how much room pods take on their nodes; records what it says.

What `make test` compares our own sum with is recorded by: python -m tools.golden.pod_requests

Each case is a pod alone on its node: its spec, and the status that a node has written while it
resizes the pod in place, or has not. kube-scheduler writes what it counts on each node into its log
on SIGUSR2.
"""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from typing import Any

from moorage_host.kube import KubeClient
from tools.build import kubernetes_version
from tools.golden.scheduler import recording
from tools.inprocess.api import send
from tools.planes.embedded import Object, Plane
from tools.planes.real import real_plane
from tools.waiting import until

RECORDED = recording("pod-requests")

PODS = "/api/v1/namespaces/default/pods"
GPU, DISK, HUGE = "example.com/gpu", "ephemeral-storage", "hugepages-2Mi"
ROOM = {"cpu": "64", "memory": "64Gi", "pods": "10", GPU: "64", DISK: "64Gi", HUGE: "1Gi"}
RUNTIME_CLASS: Object = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "heavy"},
    "handler": "heavy",
    "overhead": {"podFixed": {"cpu": "133m", "memory": "77Mi"}},
}

INFEASIBLE, DEFERRED = ("PodResizePending", "Infeasible"), ("PodResizePending", "Deferred")
IN_PROGRESS, FAILED = ("PodResizeInProgress", ""), ("PodResizeInProgress", "Error")

DUMPED = re.compile(
    r"Node name: (\S+)\s+Deleted: false\s+Requested Resources: &\{MilliCPU:(\d+) Memory:(\d+) "
    r"EphemeralStorage:(\d+) AllowedPodNumber:\d+ ScalarResources:map\[(.*?)\]\}"
    r".*?Scheduled Pods\(number: (\d+)\)",
    re.DOTALL,
)


def _container(name: str = "c", always: bool = False, **requests: str) -> Object:
    amounts = _amounts(requests)
    limits = {key: amounts[key] for key in (GPU, HUGE) if key in amounts}
    found: Object = {"name": name, "image": "x", "resources": {"requests": amounts}}
    if limits:
        found["resources"]["limits"] = limits
    return found | ({"restartPolicy": "Always"} if always else {})


def _status(
    actual: Object | None = None, allocated: Object | None = None, name: str = "c"
) -> Object:
    found: Object = {"name": name, "image": "x", "imageID": "", "ready": True, "restartCount": 0}
    if actual is not None:
        found["resources"] = {"requests": _amounts(actual)} if actual else {}
    if allocated is not None:
        found["allocatedResources"] = _amounts(allocated)
    return found


def _amounts(amounts: Object) -> Object:
    short = {"gpu": GPU, "disk": DISK, "huge": HUGE}
    return {short.get(key, key): amount for key, amount in amounts.items()}


def _pod(
    containers: list[Object],
    statuses: list[Object] | None = None,
    *conditions: tuple[str, str],
    init: list[Object] | None = None,
    init_statuses: list[Object] | None = None,
    own: Object | None = None,
    phase: str = "Running",
    runtime_class: str = "",
    **status: Any,
) -> Object:
    spec: Object = {"containers": containers}
    spec |= {"initContainers": init} if init else {}
    spec |= {"resources": {"requests": own}} if own else {}
    spec |= {"runtimeClassName": runtime_class} if runtime_class else {}
    told = [{"type": kind, "status": "True", "reason": why} for kind, why in conditions]
    found: Object = {"phase": phase, **status}
    found |= {"containerStatuses": statuses} if statuses else {}
    found |= {"initContainerStatuses": init_statuses} if init_statuses else {}
    found |= {"conditions": told} if told else {}
    return {"spec": spec, "status": found}


def cases() -> Iterator[tuple[str, Object]]:
    """Yield pods with a name for each."""
    one = [_container(cpu="1", memory="1Gi")]
    less, more = {"cpu": "500m", "memory": "512Mi"}, {"cpu": "3", "memory": "3Gi"}
    yield "no status", _pod(one, phase="Pending")
    yield "no resources in the status", _pod(one, [_status()])
    yield "only allocated", _pod(one, [_status(None, more)])
    yield "resources without amounts", _pod(one, [_status({}, more)])
    for how, condition in (
        ("", ()),
        (", in progress", (IN_PROGRESS,)),
        (", failed", (FAILED,)),
        (", deferred", (DEFERRED,)),
        (", infeasible", (INFEASIBLE,)),
    ):
        yield f"grows{how}", _pod(one, [_status(less, less)], *condition)
        yield f"shrinks{how}", _pod(one, [_status(more, more)], *condition)
        yield f"allocated before{how}", _pod(one, [_status(less, more)], *condition)
        yield f"actual before{how}", _pod(one, [_status(more, less)], *condition)
    yield "actual has more kinds", _pod([_container(cpu="1")], [_status(more, {"cpu": "1"})])
    yield "allocated has more kinds", _pod([_container(cpu="1")], [_status({"cpu": "1"}, more)])
    yield "spec has more kinds, infeasible", _pod(one, [_status({"cpu": "2"})], INFEASIBLE)
    yield "crosswise", _pod(one, [_status({"cpu": "2", "memory": "1Mi"}, {"cpu": "1m"})])
    yield "small amounts", _pod([_container(cpu="1m")], [_status({"cpu": "1500u"}, {"cpu": "0"})])
    yield "no requests", _pod([_container()], [_status(less, less)])
    yield "no requests, infeasible", _pod([_container()], [_status(less, less)], INFEASIBLE)
    yield "no status, infeasible", _pod(one, None, INFEASIBLE)
    yield (
        "other kinds",
        _pod(
            [_container(gpu="1", disk="1Gi", huge="4Mi", memory="1Gi")],
            [_status({"gpu": "2", "disk": "2Gi", "huge": "2Mi", "memory": "1Gi"}, {"disk": "3Gi"})],
        ),
    )
    two = [_container("a", cpu="1"), _container("b", cpu="2")]
    yield "the second of two", _pod(two, [_status({"cpu": "5"}, name="b")])
    yield (
        "one grows, one shrinks",
        _pod(two, [_status({"cpu": "3"}, name="a"), _status({"cpu": "1"}, name="b")]),
    )
    yield (
        "both, infeasible",
        _pod(two, [_status({"cpu": "3"}, name="a"), _status({"cpu": "1"}, name="b")], INFEASIBLE),
    )
    yield "one, infeasible", _pod(two, [_status({"cpu": "500m"}, name="a")], INFEASIBLE)
    yield "another name", _pod(two, [_status({"cpu": "9"}, name="x")])
    sidecar, step = _container("s", always=True, cpu="1"), _container("i", cpu="4")
    grown = [_status({"cpu": "3"}, {"cpu": "2"}, name="s")]
    yield "a sidecar", _pod(one, init=[sidecar], init_statuses=grown)
    yield "a sidecar, infeasible", _pod(one, None, INFEASIBLE, init=[sidecar], init_statuses=grown)
    yield "a sidecar before a step", _pod(one, init=[sidecar, step], init_statuses=grown)
    yield "a sidecar after a step", _pod(one, init=[step, sidecar], init_statuses=grown)
    yield (
        "a step has no status that counts",
        _pod(one, init=[step], init_statuses=[_status({"cpu": "9"}, name="i")]),
    )
    yield (
        "a sidecar and its container",
        _pod(one, [_status(more, more)], init=[sidecar], init_statuses=grown),
    )
    own = {"cpu": "2", "memory": "2Gi"}
    yield "of the pod itself", _pod(one, own=own)
    for how, condition in (("", ()), (", deferred", (DEFERRED,)), (", infeasible", (INFEASIBLE,))):
        yield (
            f"of the pod itself, shrinks{how}",
            _pod(
                one,
                None,
                *condition,
                own=own,
                resources={"requests": more},
                allocatedResources=more,
            ),
        )
        yield (
            f"of the pod itself, grows{how}",
            _pod(
                one,
                None,
                *condition,
                own=own,
                resources={"requests": less},
                allocatedResources=less,
            ),
        )
    yield "of the pod itself, only allocated", _pod(one, own=own, allocatedResources=more)
    yield (
        "of the pod itself, a kind is missing",
        _pod(one, None, INFEASIBLE, own=own, resources={"requests": {"cpu": "3"}}),
    )
    yield (
        "of the pod itself, and of its container",
        _pod(one, [_status({"cpu": "9", "memory": "9Gi"})], own=own, resources={"requests": more}),
    )
    yield "of the pod itself without a request", _pod(one, resources={"requests": more})
    yield "overhead", _pod(one, runtime_class="heavy")
    yield "overhead, shrinks", _pod(one, [_status(more, more)], runtime_class="heavy")
    yield (
        "overhead, of the pod itself",
        _pod(one, own=own, resources={"requests": more}, runtime_class="heavy"),
    )
    yield "pending on its node", _pod(one, [_status(more, more)], phase="Pending")


async def ask(plane: Plane, client: KubeClient) -> Object:
    """Return the cases as the API server has them, with what kube-scheduler counts."""
    await send(client, "POST", "/apis/node.k8s.io/v1/runtimeclasses", RUNTIME_CLASS)
    found = {}
    for number, (name, case) in enumerate(cases()):
        node, metadata = f"n{number}", {"name": f"p{number}", "namespace": "default"}
        obj = {"metadata": {"name": node}, "status": {"allocatable": ROOM, "capacity": ROOM}}
        await send(client, "POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **obj})
        spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, **case["spec"]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        await send(client, "POST", PODS, pod)
        path = f"{PODS}/{metadata['name']}/status"
        made = await send(client, "PATCH", path, {"status": case["status"]})
        kept = {
            key: made["spec"][key] for key in (*case["spec"], "overhead") if key in made["spec"]
        }
        status = {key: made["status"].get(key) for key in case["status"]}
        found[node] = {"case": name, "spec": {"nodeName": node, **kept}, "status": status}
    counted = await _counted(plane, len(found))
    pods = [{**each, "requests": counted[node]} for node, each in found.items()]
    return {"version": kubernetes_version(), "pods": pods}


async def _counted(plane: Plane, nodes: int) -> dict[str, Object]:
    """Return what a new kube-scheduler counts on each node."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
    }
    program, found = plane.scheduler("counting", config), dict[str, Object]()
    program.log.write_bytes(b"")
    await program.start()

    def are_all_there() -> bool:
        os.kill(program.pid, signal.SIGUSR2)
        for node, cpu, memory, disk, others, pods in DUMPED.findall(program.log.read_text()):
            scalars = {key: int(size) for key, size in re.findall(r"(\S+):(\d+)", others)}
            amounts = {"cpu": int(cpu), "memory": int(memory), DISK: int(disk), **scalars}
            if pods == "1":
                found[node] = {key: amount for key, amount in amounts.items() if amount}
        return len(found) == nodes

    try:
        await until(are_all_there)
    finally:
        await program.stop()
    return found


def _written(recorded: Object) -> str:
    """Write a recording with a line for each pod."""
    pods = ",\n".join(json.dumps(each) for each in recorded["pods"])
    return f'{{"version": "{recorded["version"]}", "pods": [\n{pods}\n]}}\n'


async def record() -> None:
    """Write the file that `make test` reads."""
    async with real_plane() as (plane, client):
        RECORDED.write_text(_written(await ask(plane, client)))


if __name__ == "__main__":
    asyncio.run(record())
