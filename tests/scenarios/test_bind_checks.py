"""Rules across pods hold without claims: nodes are checked again at the bind."""

import pytest

from tests.scenarios.world import World
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMES = tuple(f"n{i}" for i in range(24))
APP = {"app": "web"}


async def assert_apart(world: World) -> None:
    """Wait until all pods are bound, each on a node of its own."""
    places = await world.bound()
    assert len(set(places.values())) == len(places)


async def test_a_burst_does_not_break_a_rule_across_pods(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    async with world.scheduler("alone"):
        await world.create(*(pod(f"p{i}", "alone", labels=APP) for i in range(20)))
        await assert_apart(world)


async def test_two_schedulers_with_one_gateway_do_not_break_it_either(world: World) -> None:
    await world.nodes(*map(node, NAMES))
    profiles = ("alone", "alone-too")
    async with world.scheduler("alone", name="first"), world.scheduler("alone-too", name="second"):
        await world.create(*(pod(f"p{i}", profiles[i % 2], labels=APP) for i in range(20)))
        await assert_apart(world)
