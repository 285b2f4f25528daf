"""Streams of numbered requests keep their deadlines, on the event loop of every process."""

import asyncio
from typing import Any

import grpc.aio
import pytest
import uvloop

from moorage_host.rpc.stream import MessageStream


async def expect_twice(late: float) -> list[BaseException]:
    """Ask a server that is not there, first with a deadline that has passed already."""
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        call: Any = channel.stream_stream("/nothing/Nothing")(wait_for_ready=True)
        stream: MessageStream[bytes] = MessageStream(call, lambda _: None)
        now = asyncio.get_running_loop().time()
        answers = [stream.expect(now - late)[1], stream.expect(now + 0.01)[1]]
        failures = await asyncio.gather(*answers, return_exceptions=True)
        await stream.close("the test is over")
        return [each for each in failures if isinstance(each, BaseException)]


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("late", [0.0, 5.0])
def test_a_deadline_that_has_passed_fails_its_request_alone(factory: Any, late: float) -> None:
    with asyncio.Runner(loop_factory=factory) as runner:
        failures = runner.run(expect_twice(late))
    assert [type(failure) for failure in failures] == [TimeoutError, TimeoutError]
