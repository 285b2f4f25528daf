"""Many nodes and many pods, with Moorage and without."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from tests.scenarios.objects import node, pod
from tests.scenarios.world import PODS, World

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(900)]

SIZES = {"embedded": (300, 100), "real": (5000, 2000)}
"""Nodes and pods; a size that suits `make test`, and one that is worth measuring."""

PATIENCE = 300.0

# kube-scheduler's own limit of 50 requests a second would hide everything else.
UNLIMITED = {"clientConnection": {"qps": 10_000, "burst": 10_000}}


async def test_many_nodes_and_pods(
    world: World, record_property: Callable[[str, object], None]
) -> None:
    nodes, pods = SIZES[world.plane.name]
    await world.nodes(*(node(f"n{i}") for i in range(nodes)), patience=PATIENCE)
    async with world.services.binder_without_proxy():
        with_moorage = await _rate(world, "moorage", pods)
        without = await _rate(world, "without", pods, extenders=[])

    shape = f"pods/s, {nodes} nodes, {pods} pods"
    record_property(f"{shape}, with Moorage", round(with_moorage))
    record_property(f"{shape}, without", round(without))


async def _rate(world: World, profile: str, pods: int, **top: object) -> float:
    """Create pods, then start a kube-scheduler; return how many pods it bound in a second."""
    names = {f"{profile}-{i}" for i in range(pods)}
    version = (await world.read(f"{PODS}?limit=1"))["metadata"]["resourceVersion"]
    await world.create(*(pod(name, profile, cpu="1m") for name in names))
    times: list[float] = []
    watching = asyncio.create_task(_all_bound(world, version, names, times))
    async with world.scheduler(profile, top={**UNLIMITED, **top}), asyncio.timeout(PATIENCE):
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
