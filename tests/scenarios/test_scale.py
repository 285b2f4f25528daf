"""Many nodes and many pods: how many pods a second are bound, and what slows them down.

No time is asserted. What Moorage costs is seen beside an extender that does nothing, with the same
nodes scored: kube-scheduler itself has much to do to ask any extender about thousands of nodes.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from bench.processes.goprograms import NOTHING, program
from tests.scenarios.world import PODS, World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1800)]

SIZES = {"embedded": (300, 100), "real": (5000, 600)}
"""Nodes, and pods in all runs together: what suits `make test`, and what is worth measuring."""

SAMPLES = {"all nodes scored": 100, "a sample scored": 0}
"""percentageOfNodesToScore as we ship it, and as it is by default."""

PATIENCE = 900.0

# kube-scheduler's own limit of 50 requests a second would hide everything else.
UNLIMITED = {"clientConnection": {"qps": 10_000, "burst": 10_000}}


async def test_many_nodes_and_pods(
    world: World, record_property: Callable[[str, object], None]
) -> None:
    nodes, pods = SIZES[world.plane.name]
    await world.nodes(*(node(f"n{i}") for i in range(nodes)), patience=PATIENCE)
    async with world.binder_without_proxy(), _extenders(world) as extenders:
        each = pods // (len(SAMPLES) * len(extenders))
        for sample, percentage in SAMPLES.items():
            top = {**UNLIMITED, "percentageOfNodesToScore": percentage}
            rates = {who: await _rate(world, each, top | what) for who, what in extenders.items()}
            for who, rate in rates.items():
                name = f"pods/s, {nodes} nodes, {sample}, {who}"
                record_property(name, f"{rate:.1f}, Moorage {rates['Moorage'] / rate:.2f} x")


@asynccontextmanager
async def _extenders(world: World) -> AsyncIterator[dict[str, Object]]:
    """Tell what to change in kube-scheduler's configuration to ask nobody, nothing, and Moorage."""
    changes: dict[str, Object] = {"Moorage": {}, "no extender": {"extenders": []}}
    if world.plane.name == "embedded":  # `make test` builds nothing
        yield changes
        return
    process = await asyncio.create_subprocess_exec(
        await asyncio.to_thread(program, NOTHING),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(await process.stdout.readline())}"
        verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize"}
        does_nothing = {"urlPrefix": url, "nodeCacheCapable": True, "weight": 1, **verbs}
        yield {**changes, "an extender in Go that does nothing": {"extenders": [does_nothing]}}
    finally:
        process.kill()
        await process.wait()


async def _rate(world: World, pods: int, top: Object) -> float:
    """Create pods, then start a kube-scheduler; return how many pods it bound in a second."""
    version = (await world.read(f"{PODS}?limit=1"))["metadata"]["resourceVersion"]
    names = {f"p{version}-{i}" for i in range(pods)}
    await world.create(*(pod(name, "moorage", cpu="1m") for name in names))
    times: list[float] = []
    watching = asyncio.create_task(_all_bound(world, version, names, times))
    async with world.scheduler("moorage", top=top), asyncio.timeout(PATIENCE):
        await watching
    return (pods - 1) / (times[-1] - times[0])


async def _all_bound(world: World, version: str, names: set[str], times: list[float]) -> None:
    left = set(names)
    async for name, place in _changes(world, version):
        if place and name in left:
            left.discard(name)
            times.append(time.monotonic())
        if not left:
            return


class _Metadata(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct):
    node: str = msgspec.field(default="", name="nodeName")


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Change(msgspec.Struct):
    object: _Pod


async def _changes(world: World, version: str) -> AsyncIterator[tuple[str, str]]:
    query = {"watch": "true", "resourceVersion": version}
    async for line in world.client.stream_lines(PODS, query=query, silence=PATIENCE):
        obj = msgspec.json.decode(line, type=_Change).object
        yield obj.metadata.name, obj.spec.node
