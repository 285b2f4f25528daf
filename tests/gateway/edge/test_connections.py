"""Calls as Go writes them, cut as the network cuts them, and those of others among them."""

import asyncio

import pytest

from gateway.cycle import Cycle
from tools.inprocess.edge import (
    CHUNKED_HEAD,
    Filtered,
    Held,
    ScriptedCycles,
    go_request,
    names_args,
    serving,
    text,
)

BODY = text(names_args("a", "b")).encode()
CALL = go_request("POST", "/filter", BODY)
HEAD = len(CALL) - len(BODY)
CHUNKED = CHUNKED_HEAD + b"%x\r\n%s\r\n0\r\n\r\n" % (
    len(BODY),
    BODY,
)


@pytest.mark.parametrize("cut", [1, 10, HEAD - 3, HEAD, HEAD + 1, len(CALL) - 1])
async def test_a_call_is_read_however_it_is_cut(cut: int) -> None:
    async with serving() as edge, edge.connect() as wire:
        for _ in range(2):
            await wire.send(CALL[:cut])
            await asyncio.sleep(0)
            await wire.send(CALL[cut:])
            assert (await wire.answer()).json["NodeNames"] == ["a", "b"]


async def test_calls_that_come_before_the_answer_are_answered_in_turn() -> None:
    asked = [go_request("POST", "/filter", text(names_args(f"n{i}")).encode()) for i in range(5)]
    async with serving() as edge, edge.connect() as wire:
        await wire.send(b"".join(asked) + CALL[:HEAD])
        for index in range(5):
            assert (await wire.answer()).json["NodeNames"] == [f"n{index}"]
        await wire.send(BODY)
        assert (await wire.answer()).json["NodeNames"] == ["a", "b"]


@pytest.mark.parametrize("other", [CHUNKED, CALL.replace(b"Accept-Encoding: gzip", b"X-Other: 1")])
async def test_calls_of_other_clients_may_come_on_the_same_connection(other: bytes) -> None:
    async with serving() as edge, edge.connect() as wire:
        await wire.send(CALL + other + CALL)
        for _ in range(3):
            assert (await wire.answer()).json["NodeNames"] == ["a", "b"]


async def test_a_call_that_comes_while_another_is_answered_waits() -> None:
    held = Held()
    cycles = ScriptedCycles(on_filter=held)
    async with serving(cycles) as edge, edge.connect() as wire, edge.connect() as other:
        await wire.send(CALL)
        await held.begun.wait()
        await wire.send(CALL[:HEAD])
        await other.post("/prioritize", BODY)  # the edge has had its turn meanwhile
        held.go_on.set()
        await wire.answer()
        await wire.send(BODY)
        assert (await wire.answer()).json["NodeNames"] == ["a", "b"]


async def test_a_caller_that_is_still_sending_can_read_that_it_was_too_slow() -> None:
    async with serving(http_timeout=0.1) as edge, edge.connect() as wire:
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await wire.send(CALL[:-1])
        await edge.until_counted(verb="filter", result="bad_request")
        await wire.send(CALL[-1:])
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
        answer = await wire.answer()
        assert "did not arrive in time" in answer.json["Error"]
        assert answer.headers["connection"] == "close"
        assert await wire.closed_by_server()
    assert not edge.cycles.scheduling


async def test_a_stopping_edge_finishes_what_it_has_begun() -> None:
    held = Held()
    edge_of_waiting = serving(ScriptedCycles(on_filter=held), shutdown_grace=60.0)
    edge = await edge_of_waiting.__aenter__()
    async with edge.connect() as idle, edge.connect() as busy, asyncio.TaskGroup() as group:
        await busy.send(CALL)
        await held.begun.wait()
        group.create_task(edge_of_waiting.__aexit__(None, None, None))
        async with asyncio.timeout(20):
            assert await idle.closed_by_server()
        held.go_on.set()
        answer = await busy.answer()
        assert answer.json["NodeNames"] == ["a", "b"]
        assert answer.headers["connection"] == "close"
        assert await busy.closed_by_server()


async def test_a_stopping_edge_does_not_wait_for_ever() -> None:
    begun = asyncio.Event()

    async def hang(_: Cycle) -> Filtered:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with asyncio.timeout(20):
        cycles = ScriptedCycles(on_filter=hang)
        async with serving(cycles, shutdown_grace=0.01) as edge, edge.connect() as wire:
            await wire.send(CALL)
            await begun.wait()
        assert await wire.closed_by_server()
    assert edge.count("moorage_extender_requests_total", verb="filter", result="cancelled")
