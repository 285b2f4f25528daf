"""What follows a scheduling cycle: the bind, and what its outcome does."""

from typing import Any

import pytest

from tests.sandbox.scheduler.support import World
from tools.inprocess.api import Object
from tools.waiting import until

BINDER: Object = {"bindVerb": "bind"}


async def test_a_failed_bind_frees_the_room_and_is_tried_again(world: World) -> None:
    answers: list[Any] = [{"Error": "device is busy"}]
    world.extender.on["bind"] = lambda body: answers.pop() if answers else world.binds(body)
    world.node("a", cpu="1")
    world.pod("web", cpu="1")
    async with world.scheduler(BINDER):
        await until(lambda: world.condition("web")[0])
        assert world.condition("web") == ("SchedulerError", "device is busy")
        await until(world.placed("web"))
    assert world.extender.verbs("web") == ["bind", "bind"]


async def test_a_bind_that_succeeded_but_said_otherwise_is_not_repeated(world: World) -> None:
    world.node("a")
    async with world.scheduler(BINDER) as scheduler:

        async def bind_and_fail(body: Object) -> int:
            await world.binds(body)
            pods = scheduler.cache.pods
            await until(lambda: pods[body["PodUID"]].pod.spec.node_name)
            return 503

        world.extender.on["bind"] = bind_and_fail
        world.pod("web")
        await until(lambda: world.events("web"))
        assert len(scheduler.queue) == 0
    assert world.place("web") == "a"
    assert world.extender.verbs("web") == ["bind"]
    (event,) = world.events("web")
    assert event["note"].endswith("code 503")


async def test_an_ignorable_binder_that_fails_is_replaced_by_the_default_one(
    world: World,
) -> None:
    world.extender.on["bind"] = lambda _: 500
    world.node("a")
    world.pod("web")
    async with world.scheduler({**BINDER, "ignorable": True}):
        await until(world.placed("web"))
    assert world.extender.verbs("web") == ["bind"]


async def test_the_default_binders_refusal_is_reported(world: World) -> None:
    world.api.fault("create", "pods/binding", status=500)
    world.node("a")
    world.pod("web")
    async with world.scheduler():
        await until(lambda: world.condition("web")[0])
        reason, message = world.condition("web")
        await until(world.placed("web"))
    assert reason == "SchedulerError"
    assert message.startswith('running Bind plugin "DefaultBinder": ')


@pytest.mark.parametrize("answers", [True, False])
async def test_a_stopping_scheduler_lets_binds_end(
    world: World, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox.scheduler.scheduler.GRACE_SECONDS", 10.0 if answers else 0.01)
    gate = world.hold_binds()
    world.node("a")
    world.pod("web")
    async with world.scheduler(BINDER) as scheduler:
        await until(lambda: world.extender.busy.get("bind"))
        scheduler.stop()
        world.pod("late")
        if answers:
            gate.set()
    assert world.place("web") == ("a" if answers else None)
    assert [e["reason"] for e in world.events("web")] == (["Scheduled"] if answers else [])
    assert world.extender.verbs("late") == []


async def test_two_connections_outlive_their_calls_as_in_go(world: World) -> None:
    gate, names = world.hold_binds(), [f"web-{number}" for number in range(6)]
    world.node("a")
    for name in names:
        world.pod(name)
    async with world.scheduler(BINDER):
        await until(lambda: world.extender.busy.get("bind") == len(names))
        gate.set()
        await until(world.placed(*names))
        await until(lambda: world.extender.open_connections <= 2)
        assert world.extender.open_connections == 2
