"""Preemption through the extender's preempt verb."""

import pytest

from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")


def priority_class(name: str, value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


@pytest.mark.parametrize("node_cache_capable", [True, False])
async def test_moorage_has_a_say_in_where_room_is_made(
    world: World, node_cache_capable: bool
) -> None:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(node("n1", cpu="1"), node("n2", cpu="1"))
    async with world.scheduler(nodeCacheCapable=node_cache_capable):
        await world.create(pod("small-1", cpu="900m"), pod("small-2", cpu="900m"))
        before = await world.bound()
        urgent = {"priorityClassName": "urgent"}
        await world.create(pod("urgent", cpu="800m", spec=urgent, reject={"n1": "not for you"}))
        places = await world.bound("urgent")

    victim = next(name for name, place in before.items() if place == "n2")
    survivor = next(name for name, place in before.items() if place == "n1")
    assert places == {"urgent": "n2", survivor: "n1"}
    assert victim not in places


async def test_nobody_is_evicted_for_a_pod_that_moorage_would_reject(world: World) -> None:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(node("n1", cpu="1"))
    async with world.scheduler():
        await world.create(pod("small", cpu="900m"))
        await world.bound()
        urgent = {"priorityClassName": "urgent"}
        await world.create(pod("urgent", cpu="800m", spec=urgent, reject={"n1": "not for you"}))
        message = await world.condition("urgent", "Unschedulable")

    assert await world.places() == {"small": "n1", "urgent": ""}
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu. ")


async def test_a_rejection_that_is_not_final_does_not_make_kube_scheduler_evict_anybody(
    world: World,
) -> None:
    await world.create(priority_class("urgent", 1000))
    await world.nodes(node("n1"))
    async with world.scheduler():
        await world.create(pod("small"))
        await world.bound()
        urgent = {"priorityClassName": "urgent"}
        await world.create(pod("urgent", spec=urgent, preemptible={"n1": "too crowded"}))
        message = await world.condition("urgent", "Unschedulable")

    # It asks in-tree filters alone whether removing pods helps, and they had no objection.
    assert message == (
        "0/1 nodes are available: 1 too crowded. preemption: expected at least one victim pod on "
        'node "n1"'
    )
    assert await world.places() == {"small": "n1", "urgent": ""}
