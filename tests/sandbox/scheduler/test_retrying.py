"""What makes the scheduler try again, and what it does not care about."""

import asyncio

from tests.sandbox.scheduler.support import World
from tools.inprocess.api import Object
from tools.waiting import until

FILTER: Object = {"filterVerb": "filter", "nodeCacheCapable": True}


async def test_an_extender_that_was_down_is_asked_again_after_a_backoff(world: World) -> None:
    world.node("a")
    await world.extender.stop()
    world.pod("web")
    async with world.scheduler(FILTER):
        await until(lambda: world.condition("web")[0])
        reason, message = world.condition("web")
        await world.extender.start(world.extender.port)
        await until(world.placed("web"))
    address = world.extender.url.removeprefix("http://")
    assert reason == "SchedulerError"
    assert message == (
        f'Post "http://{address}/filter": dial tcp {address}: connect: connection refused'
    )


async def test_a_pod_without_nodes_is_placed_when_one_comes(world: World) -> None:
    world.pod("web")
    async with world.scheduler(FILTER):
        await until(lambda: world.condition("web")[0])
        assert world.condition("web") == (
            "Unschedulable",
            "no nodes available to schedule pods",
        )
        world.node("a")
        await until(world.placed("web"))


async def test_a_pod_deleted_during_its_cycle_does_not_come_back(world: World) -> None:
    gate = asyncio.Event()

    async def slow(_: Object) -> Object:
        await gate.wait()
        return {"Error": "too late"}

    world.extender.on["filter"] = slow
    world.node("a")
    uid = world.pod("web")["metadata"]["uid"]
    async with world.scheduler(FILTER) as scheduler:
        await until(lambda: world.extender.busy.get("filter"))
        world.api.delete("/api/v1/namespaces/default/pods/web")
        await until(lambda: uid not in scheduler.cache.pods)
        gate.set()
        await until(lambda: world.events("web"))
        assert len(scheduler.queue) == 0


async def test_lost_watches_and_old_versions_are_made_up_for(world: World) -> None:
    world.node("a")
    faults = world.api.faults
    async with world.scheduler(FILTER) as scheduler:
        for name, lose in (("p0", faults.drop_watches), ("p1", faults.expire_watches)):
            lose("pods")
            world.pod(name)
            await until(world.placed(name))
        await until(lambda: len(scheduler.cache.pods) == 2)
        faults.expire_watches("pods")
        world.api.delete("/api/v1/namespaces/default/pods/p0")
        await until(lambda: len(scheduler.cache.pods) == 1)


async def test_an_api_server_that_fails_at_first_is_waited_for(world: World) -> None:
    world.api.fault("list", "*", status=500, times=3)
    world.node("a")
    world.pod("web")
    async with world.scheduler(FILTER):
        await until(world.placed("web"))


async def test_a_pod_that_ended_uses_no_room(world: World) -> None:
    world.node("a", cpu="1")
    world.pod("job", cpu="1")
    async with world.scheduler(FILTER):
        await until(world.placed("job"))
        world.api.merge(
            "/api/v1/namespaces/default/pods/job/status", {"status": {"phase": "Succeeded"}}
        )
        world.pod("next", cpu="1")
        await until(world.placed("next"))
