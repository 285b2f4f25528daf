"""What makes every metric appear: first what is usual, then faults."""

from functools import partial

import aiohttp
import grpc.aio
import pytest
import yaml

from moorage.v1 import binder_pb2, binder_pb2_grpc
from tests.monitoring.installation import NODES, Installation
from tests.scenarios.world import World
from tools.planes.objects import node, pod

PROFILES = (
    "steered",
    "annotated",
    "grouped",
    "isolated",
    "licensed",
    "shadow-alike",
    "shadow-weighted",
    "shadow-paused",
    "measured",
    "nobodys",
)


async def run_well(installation: Installation) -> None:
    """Have pods placed in all ways."""
    world = installation.world
    await world.nodes(*(node(name, annotations={"device": "0"}) for name in NODES))
    await _measure(installation)
    async with world.scheduler(*PROFILES):
        await world.create(
            pod("best", score={"n1": 90, "n2": 10}),
            pod("equal", score=dict.fromkeys(NODES, 7)),
            pod("rounded", score={"n1": 50.2, "n2": 50.1}),
            pod("choosy", reject={"n1": "not here"}),
            pod("noted", "annotated"),
            pod("alike", "shadow-alike"),
            pod("paused", "shadow-paused"),
            pod("measured", "measured"),
            pod("foreign", "nobodys"),
            pod("run-1", "isolated", labels={"pipelines.kubeflow.org/run": "a"}),
        )
        await world.create(pod("large", cpu="6", score={"n1": 90}))
        await world.bound("large")
        for number in range(3):  # the shadow prefers empty nodes more than the profile does
            better = {"n1": 100, "n2": 50}
            await world.create(pod(f"weighted-{number}", "shadow-weighted", score=better))
            await world.bound(f"weighted-{number}")
        for number in range(3):
            await world.create(pod(f"more-{number}", score={"n1": 90, "n2": 10}))
            await world.bound(f"more-{number}")
        labels = {"gang": "train", "gang-size": "3"}
        await world.create(pod("worker-0", "grouped", labels=labels))
        await world.event("worker-0", "pods of the gang are missing")
        for number in (1, 2):
            await world.create(pod(f"worker-{number}", "grouped", labels=labels))
        await world.bound(*(f"worker-{number}" for number in range(3)))
        await _retry(world)


async def _retry(world: World) -> None:
    """Have a plugin ask for another attempt, before kube-scheduler makes one by itself."""
    there, number = world.plane.directory / "license", 0
    while not await world.metric("moorage_retried_pods_total", outcome="written"):
        there.unlink(missing_ok=True)
        name, number = f"licensed-{number}", number + 1
        await world.create(pod(name, "licensed"))
        await world.condition(name, "Unschedulable")
        await world.until(partial(world.was_tried, name, times=2))
        there.touch()
        await world.bound(name)


async def _measure(installation: Installation) -> None:
    """Change the policy: a further profile has plugins that work in the background."""
    world = installation.world
    file = world.plane.directory / "policy.yaml"
    policy = yaml.safe_load(file.read_text())
    prometheus = {"address": installation.prometheus, "interval": "500ms"}
    arguments = {"prometheus": prometheus, "networkInterface": "eth0", "timeRange": "4s"}
    profile = {
        "schedulerName": "measured",
        "plugins": {"multiPoint": {"enabled": [{"name": "NetworkTraffic"}, {"name": "Flaky"}]}},
        "pluginConfig": [{"name": "NetworkTraffic", "args": arguments}],
    }
    policy["profiles"].append(profile)
    file.write_text(yaml.safe_dump(policy))

    async def active() -> bool:
        return await world.metric("moorage_policy_reloads_total", outcome="ok") > 0

    await world.until(active)


async def run_badly(installation: Installation) -> None:
    """Break what can be broken while Prometheus watches."""
    world = installation.world
    async with world.scheduler("steered", "measured"):
        await _fence(world)
        await _knock(world)
        await _drop_watches(world)
        await _hold_scorer(world)
        await world.create(pod("failing", fail="on purpose"))
        await world.event("failing", "on purpose")
        await world.create(pod("unlucky", "measured", labels={"unlucky": "yes"}))
        await world.bound("unlucky")
        await _fail_binds(world)
    await _forget_bind(world)
    for name in ("scorer-1", "scorer-2"):
        await world.services.programs[name].kill()
    async with world.scheduler("steered"):
        await world.create(pod("unscored"))
        await world.bound("unscored")


async def _fence(world: World) -> None:
    """Ask the binder for a bind of an epoch that is over; the gateway has to begin another term."""
    async with grpc.aio.insecure_channel(world.services.target("binder")) as channel:
        stub = binder_pb2_grpc.BinderServiceStub(channel)
        await stub.Barrier(
            binder_pb2.BinderServiceBarrierRequest(epoch=1000, holder="test"), timeout=10
        )
        late = binder_pb2.BindRequest(namespace="default", name="late", uid="u", node="n1", epoch=7)
        with pytest.raises(grpc.aio.AioRpcError, match="epoch 1000"):
            await stub.Bind(late, timeout=50)


async def _knock(world: World) -> None:
    """Send what an HTTP port refuses, more often than is logged."""
    headers = {"Origin": "http://elsewhere.example"}
    async with aiohttp.ClientSession() as http:
        for _ in range(40):
            async with http.get(f"{world.services.admin}/metrics", headers=headers) as answer:
                assert answer.status == 403


async def _hold_scorer(world: World) -> None:
    """Have one scorer not answer: its work goes to the other one."""
    scorer = world.services.programs["scorer-1"]
    scorer.hold()
    await world.create(pod("delayed", score={"n1": 90, "n2": 10}))
    await world.bound("delayed")
    scorer.go_on()


async def _drop_watches(world: World) -> None:
    url = f"{world.plane.url}/sandbox/watches/drop"
    async with aiohttp.ClientSession() as http:
        for resource in ("pods", "nodes"):
            async with http.post(url, json={"resource": resource}) as answer:
                assert answer.status < 300, await answer.text()


async def _fail_binds(world: World) -> None:
    """Have a bind succeed at its third try."""
    fault = {"verb": "create", "resource": "pods/binding", "status": 500, "times": 2}
    url = f"{world.plane.url}/sandbox/faults"
    async with aiohttp.ClientSession() as http, http.post(url, json=fault) as answer:
        assert answer.status < 300, await answer.text()
    await world.create(pod("third-try"))
    await world.bound("third-try")


async def _forget_bind(world: World) -> None:
    """Have a bind run out of time that nobody tries again: the gateway has to ask what it did."""
    world.proxy.before.clear()

    async def held() -> bool:
        return world.proxy.waiting > 0

    async with world.scheduler("steered"):
        await world.create(pod("unknown"))
        await world.until(held)

    async def settled() -> bool:
        return await world.metric("moorage_settled_binds_total") > 0

    await world.until(settled)
    world.proxy.reset()
