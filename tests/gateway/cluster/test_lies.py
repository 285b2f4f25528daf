"""The picture is right again once an API server no longer lies, and what was wrong is reported."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from gateway.cluster.endings import _OUTAGE, Restart, WatchLimits
from gateway.cluster.reflector import Reflector
from sandbox.apiserver import ApiServer, Settings
from sandbox.apiserver.lies import Lie
from tests.gateway.cluster.test_reflector import Recorded, World, reflecting_nodes, world_of
from tools.waiting import until

TRUE = frozenset({"gzip", "split"})
"""What only looks odd: everything is seen meanwhile."""

QUIET = frozenset({"silent", "drip"})
"""Lies by silence, of which a watch that is no longer sent lies catches up."""

BEFORE_ANYTHING = sorted(set(get_args(Lie)) - QUIET)
"""Lies that also the first list has to cope with; without an end, that would take 30 s."""

SOON = 5.0
"""Seconds after a lie ends within which the waits of a gateway are over."""

AT_ONCE = {Restart.NO_STREAMED_LIST, Restart.RELISTED}


def longest_waits(ends: Sequence[Restart]) -> float:
    """Return how long a gateway waits after these ends of watches at most, in seconds."""
    limits = WatchLimits()
    waits = dict.fromkeys(_OUTAGE, limits.outage_maximum) | dict.fromkeys(AT_ONCE, 0.0)
    return sum(waits.get(each, limits.backoff_maximum) for each in ends)


def truth(world: World) -> dict[str, dict[str, str]]:
    cluster = world.server.cluster
    items = cluster.collection(cluster.target("/api/v1/nodes").resource).list(None)
    objects = (item.object for item in items)
    return {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in objects}


def picture(recorded: Recorded) -> dict[str, dict[str, str]]:
    return {name: dict(obj.metadata.labels or {}) for name, obj in recorded.objects.items()}


def change(world: World, step: int) -> None:
    """Change a node twice, add two, and delete one."""
    for turn in range(2):
        world.api.label("/api/v1/nodes/a", step=f"{step}-{turn}")
    world.api.node(f"stays-{step}"), world.api.node(f"goes-{step}")
    world.api.delete(f"/api/v1/nodes/goes-{step}")


def lie_about_nodes(world: World, lie: Lie) -> None:
    for verb in ("watch", "list"):
        world.api.fault(verb, "nodes", lie=lie, times=1000)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "LIST"])
@pytest.mark.parametrize("lie", get_args(Lie))
async def test_after_lies_the_picture_is_right_again(
    tmp_path: Path, lie: Lie, streamed: bool
) -> None:
    async with world_of(ApiServer(Settings(bookmark_seconds=0.05)), tmp_path) as world:
        world.api.node("a")
        if not streamed:
            world.api.fault("watch", "nodes", status=422)
        async with reflecting_nodes(world.client, silence=30.0) as (reflector, recorded):
            await until(lambda: recorded.names == {"a"})
            lie_about_nodes(world, lie)
            world.server.faults.drop_watches()
            await until(lambda: world.server.faults.watches() == 1 or reflector.problem)
            for step in range(3):
                change(world, step)
                await until(lambda: lie in QUIET or noticed(lie, world, reflector, recorded))
            world.server.faults.clear()
            waiting = max(len(recorded.restarts) - 1, 0)
            change(world, 3)
            await until(lambda: picture(recorded) == truth(world))
            assert longest_waits(recorded.restarts[waiting:]) <= SOON


def noticed(lie: Lie, world: World, reflector: Reflector[Any], recorded: Recorded) -> bool:
    """Whether a lie is believed to be true, or known for what it is."""
    if lie in TRUE or lie == "twice":
        return picture(recorded) == truth(world)
    return Restart.MALFORMED in recorded.restarts and bool(reflector.note())


@pytest.mark.parametrize("lie", BEFORE_ANYTHING)
async def test_lies_from_the_beginning_are_no_list(world: World, lie: Lie) -> None:
    world.api.node("a"), world.api.node("b")
    lie_about_nodes(world, lie)
    async with reflecting_nodes(world.client) as (_, recorded):
        await until(lambda: recorded.restarts or recorded.names == {"a", "b"})
        world.server.faults.clear()
        waiting = max(len(recorded.restarts) - 1, 0)
        change(world, 0)
        await until(lambda: picture(recorded) == truth(world))
        assert longest_waits(recorded.restarts[waiting:]) <= SOON


@pytest.fixture
async def world(tmp_path: Path) -> Any:
    async with world_of(ApiServer(), tmp_path) as world:
        yield world
