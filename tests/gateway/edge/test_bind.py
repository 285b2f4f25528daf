"""What bind calls get back, and that a bind once begun is never cancelled."""

import asyncio
import contextlib
import json

import pytest

from gateway.cycle import BindCall, CallFailedError, StandsByError
from tools.inprocess.edge import ScriptedCycles, go_request, serving, text

ARGS = {"PodName": "web-0", "PodNamespace": "default", "PodUID": "u-1", "Node": "n1"}


class SlowBind:
    """A bind that lasts until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, _: BindCall) -> None:
        self.begun.set()
        await self.go.wait()
        self.done.set()


async def test_a_bound_pod_is_an_empty_error() -> None:
    async with serving() as edge:
        answer = await edge.post("/bind", ARGS)
        (call,) = edge.cycles.binds
    assert answer.body == b'{"Error":""}'
    assert (call.namespace, call.name, call.uid, call.node) == ("default", "web-0", "u-1", "n1")


@pytest.mark.parametrize(
    ("failure", "text_of_it"),
    [
        (CallFailedError("pod is bound elsewhere"), "pod is bound elsewhere"),
        (KeyError("secret"), "moorage: internal error in the gateway, see its log"),
        (TimeoutError(), "moorage: the gateway did not decide in time"),
    ],
)
async def test_a_failure_is_in_the_error_field(failure: Exception, text_of_it: str) -> None:
    async def fail(_: BindCall) -> None:
        raise failure

    async with serving(ScriptedCycles(on_bind=fail)) as edge:
        answer = await edge.post("/bind", ARGS)
    assert (answer.status, answer.json) == (200, {"Error": text_of_it})


@pytest.mark.parametrize("missing", list(ARGS))
async def test_every_field_is_needed(missing: str) -> None:
    async with serving() as edge:
        for args in (ARGS | {missing: ""}, {k: v for k, v in ARGS.items() if k != missing}):
            answer = await edge.post("/bind", args)
            assert missing in answer.json["Error"]
        assert edge.cycles.binds == []


async def test_any_casing_is_understood() -> None:
    args = {"podname": "web-0", "PODNAMESPACE": "default", "podUID": "u-1", "node": "n1"}
    async with serving() as edge:
        assert (await edge.post("/bind", args)).json == {"Error": ""}


async def test_a_bind_goes_on_when_its_caller_hangs_up() -> None:
    bind = SlowBind()
    async with serving(ScriptedCycles(on_bind=bind)) as edge:
        async with edge.connect() as wire:
            await wire.send(go_request("POST", "/bind", text(ARGS).encode()))
            await bind.begun.wait()
        await edge.until_counted(verb="bind", result="cancelled")
        bind.go.set()
        await bind.done.wait()


async def test_a_bind_goes_on_when_its_answer_is_due() -> None:
    bind = SlowBind()
    async with serving(ScriptedCycles(on_bind=bind), http_timeout=0.1) as edge:
        answer = await edge.post("/bind", ARGS)
        assert answer.json == {"Error": "moorage: the gateway did not decide in time"}
        bind.go.set()
        await bind.done.wait()


async def test_a_stop_waits_for_binds_whose_callers_are_gone() -> None:
    bind = SlowBind()
    async with contextlib.AsyncExitStack() as stack:
        edge = await stack.enter_async_context(serving(ScriptedCycles(on_bind=bind)))
        async with edge.connect() as wire:
            await wire.send(go_request("POST", "/bind", text(ARGS).encode()))
            await bind.begun.wait()
        asyncio.get_running_loop().call_later(0.05, bind.go.set)
    assert bind.done.is_set()


async def test_binds_run_side_by_side() -> None:
    bind = SlowBind()
    arrived = asyncio.Barrier(51)

    async def meet(call: BindCall) -> None:
        del call
        await arrived.wait()
        await bind.go.wait()

    async with serving(ScriptedCycles(on_bind=meet)) as edge, asyncio.TaskGroup() as group:
        calls = [group.create_task(edge.post("/bind", ARGS)) for _ in range(50)]
        await arrived.wait()
        bind.go.set()
    assert {call.result().body for call in calls} == {b'{"Error":""}'}


async def test_a_gateway_that_stands_by_closes_the_connection_so_that_the_next_finds_another() -> (
    None
):
    async def refuse(_: BindCall) -> None:
        raise StandsByError("another one decides")

    async with serving(ScriptedCycles(on_bind=refuse)) as edge, edge.connect() as wire:
        answer = await wire.post("/bind", json.dumps(ARGS).encode())
        assert answer.json == {"Error": "another one decides"}
        assert await wire.closed_by_server()
