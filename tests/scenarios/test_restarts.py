"""Processes die under load, and no pod is lost or bound twice."""

from collections import Counter

import pytest

from tests.scenarios.world import World
from tools.planes.objects import node, pod

pytestmark = pytest.mark.asyncio(loop_scope="session")

PODS = {"embedded": 40, "real": 200}


@pytest.mark.parametrize("victim", ["gateway", "filter", "scorer-1", "binder", "kube-scheduler"])
async def test_every_pod_is_bound_once_though_a_process_dies(world: World, victim: str) -> None:
    await world.nodes(*(node(f"n{i}") for i in range(10)))
    async with world.scheduler():
        count = PODS[world.plane.name]
        await world.create(*(pod(f"p{i}") for i in range(count)))
        await world.placed(count // 10)

        program = (world.services.programs | world.schedulers)[victim]
        await program.kill()
        await program.start()
        places = await world.bound()

    assert len(places) == count
    bound = Counter(name for name, status in world.proxy.binds if status == 201)
    assert all(count == 1 for count in bound.values())
    assert len(bound) == count
