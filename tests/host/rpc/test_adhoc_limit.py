"""Calls by hand: a few at a time, and nothing that they send makes a service work for long."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest
import structlog

from moorage_host.rpc.adhoc import ConcurrencyLimit
from moorage_host.rpc.channel import connect
from moorage_host.rpc.serve import running
from tests.host.rpc.support import settings
from tests.host.rpc.tiny import SERVICE, TinyServicer, tiny

BIND = f"/{SERVICE}/Bind"
STUCK = b"\x22\x05stuck"
"""A bind request for the node "stuck": its answer waits for the test."""


@asynccontextmanager
async def limited() -> AsyncIterator[tuple[TinyServicer, grpc.aio.Channel]]:
    """Run a service with room for one call and one that waits."""
    one = ConcurrencyLimit(BIND, calls=1, waiting=1, message_bytes=1000)
    async with (
        running(replace(tiny(), limit=one), settings(shutdown_grace=0.0)) as server,
        connect(server.grpc) as channel,
    ):
        yield server.servicer, channel


async def call(channel: grpc.aio.Channel, message: bytes, method: str = BIND) -> str:
    """Return the code of a call, and its details."""
    unary: Any = channel.unary_unary(method)
    try:
        await unary(message, timeout=20)
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"
    return "OK"


async def test_calls_beyond_the_limit_are_refused_with_what_to_do() -> None:
    async with limited() as (servicer, channel):
        first = asyncio.create_task(call(channel, STUCK))
        await servicer.binding.wait()
        others = {asyncio.create_task(call(channel, b"")) for _ in range(12)}
        refused: set[asyncio.Task[str]] = set()
        while len(refused) < 11:
            done, _ = await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
            refused, others = refused | done, others - done
        servicer.unstuck.set()
        assert [await first, *[await each for each in others]] == ["OK", "OK"]
    for each in refused:
        assert each.result().startswith("RESOURCE_EXHAUSTED: 1 calls by hand run and 1 wait")
        assert "--adhoc-calls" in each.result()


async def test_methods_without_a_limit_do_not_wait() -> None:
    async with limited() as (servicer, channel):
        first = asyncio.create_task(call(channel, STUCK))
        await servicer.binding.wait()
        assert await call(channel, b"", f"/{SERVICE}/ListPlugins") == "OK"
        servicer.unstuck.set()
        assert await first == "OK"


async def test_a_message_by_hand_that_is_too_large_is_refused_before_it_is_read() -> None:
    async with limited() as (_, channel):
        answer = await call(channel, b"\xff" * 1001)  # which would be malformed, too
    assert answer.startswith("INVALID_ARGUMENT: the message has 1001 bytes")
    assert "--adhoc-bytes" in answer


@pytest.mark.parametrize("method", ["Bind", "ListPlugins"])
async def test_garbage_is_invalid_and_leaves_no_traceback(
    method: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with structlog.testing.capture_logs() as logs:
        async with limited() as (_, channel):
            before = len(logs)
            for garbage in (b"\xff\xff\xff", b"\x0a" * 99, b"\x0a\x05x"):
                answer = await call(channel, garbage, f"/{SERVICE}/{method}")
                assert answer == "INVALID_ARGUMENT: the message is malformed"
            assert all(entry["log_level"] == "debug" for entry in logs[before:])
    assert "Traceback" not in "".join([*capfd.readouterr(), caplog.text])


async def test_a_call_without_a_message_is_invalid() -> None:
    async with limited() as (_, channel):
        stream: Any = channel.stream_unary(BIND)
        with pytest.raises(grpc.aio.AioRpcError, match="the call has no message"):
            await stream(iter(()), timeout=20)
