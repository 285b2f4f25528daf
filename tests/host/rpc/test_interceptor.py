"""What stands around every call, and the limits of calls by hand."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest
import structlog
from prometheus_client import REGISTRY

from moorage_host.rpc.adhoc import ConcurrencyLimit
from moorage_host.rpc.channel import connect
from moorage_host.rpc.errors import CallError
from moorage_host.rpc.interceptor import CallInterceptor
from moorage_host.rpc.serve import running
from tests.host.rpc.support import settings
from tests.host.rpc.tiny import SERVICE, TinyServicer, tiny
from tools.waiting import until

Code = grpc.StatusCode
Context = grpc.aio.ServicerContext[Any, Any]
KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")


class Echo:
    """Answers with what it gets, in all kinds of call, or does what it is told."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.waiting = asyncio.Event()
        self.closed = asyncio.Event()

    async def act(self, request: bytes, context: Context) -> bytes:
        if request == b"refuse":
            raise CallError(Code.NOT_FOUND, "no such pød", reason="NO_POD")
        if request == b"crash":
            raise KeyError("secret")
        if request == b"abort":
            await context.abort(Code.DATA_LOSS, "gone")
        if request == b"wait":
            await self.wait()
        if request == b"context":
            return json.dumps(structlog.contextvars.get_contextvars()).encode()
        return request

    async def wait(self) -> None:
        task = asyncio.current_task()
        assert task
        self.tasks.append(task)
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.closed.set()

    async def unary_unary(self, request: bytes, context: Context) -> bytes:
        return await self.act(request, context)

    async def unary_stream(self, request: bytes, context: Context) -> AsyncIterator[bytes]:
        yield b"first"
        yield await self.act(request, context)

    async def stream_unary(self, requests: AsyncIterator[bytes], context: Context) -> bytes:
        return b"".join([await self.act(request, context) async for request in requests])

    async def stream_stream(self, requests: AsyncIterator[bytes], context: Context) -> None:
        async for request in requests:
            await context.write(await self.act(request, context))


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
async def channel(echo: Echo) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server(interceptors=[CallInterceptor()])
    handlers = {
        kind: getattr(grpc, f"{kind}_rpc_method_handler")(getattr(echo, kind)) for kind in KINDS
    }
    generic = grpc.method_handlers_generic_handler("test.Echo", handlers)
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as opened:
        yield opened
    await server.stop(None)


async def start_unknown(channel: grpc.aio.Channel) -> None:
    method: Any = channel.unary_unary("/no.Such/Method")
    await method(b"", timeout=50)


def start(channel: grpc.aio.Channel, kind: str, request: bytes, **options: Any) -> Any:
    method: Any = getattr(channel, kind)(f"/test.Echo/{kind}")
    return method(iter([request]) if kind.startswith("stream") else request, timeout=50, **options)


async def answers(call: Any) -> list[bytes]:
    if hasattr(call, "__aiter__"):
        return [answer async for answer in call]
    return [await call]


def handled(method: str, code: str, service: str = "test.Echo") -> float:
    labels = {"grpc_service": service, "grpc_method": method, "grpc_code": code}
    return REGISTRY.get_sample_value("grpc_server_handled_total", labels) or 0.0


@pytest.mark.parametrize("kind", KINDS)
async def test_answers_pass_and_are_counted(channel: grpc.aio.Channel, kind: str) -> None:
    before = handled(kind, "OK")
    assert (await answers(start(channel, kind, b"hello")))[-1] == b"hello"
    assert handled(kind, "OK") == before + 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("request_", "code", "details", "reason"),
    [
        (b"refuse", Code.NOT_FOUND, "no such pød", "NO_POD"),
        (b"abort", Code.DATA_LOSS, "gone", None),
        (b"crash", Code.INTERNAL, "internal error; the log of the service has the cause", None),
    ],
)
async def test_a_failure_has_its_code_and_text_and_the_cause_of_a_crash_stays_in_the_log(
    channel: grpc.aio.Channel, kind: str, request_: bytes, code: Code, details: str, reason: str
) -> None:
    before = handled(kind, code.name)
    with structlog.testing.capture_logs() as logs, pytest.raises(grpc.aio.AioRpcError) as failed:
        await answers(start(channel, kind, request_))
    assert (failed.value.code(), failed.value.details()) == (code, details)
    assert dict(failed.value.trailing_metadata() or ()).get("moorage-reason") == reason
    causes = [repr(entry["exc_info"]) for entry in logs if entry["log_level"] == "error"]
    assert ["KeyError" in each for each in causes] == [True] * (code is Code.INTERNAL)

    async def counted() -> bool:  # after the status is sent
        return handled(kind, code.name) == before + 1

    await until(counted)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_caller_who_hangs_up_ends_the_handler_and_is_counted(
    channel: grpc.aio.Channel, echo: Echo, kind: str
) -> None:
    before = handled(kind, "CANCELLED")
    call = start(channel, kind, b"wait")
    reading = asyncio.ensure_future(answers(call))
    await echo.waiting.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await echo.closed.wait()

    async def counted() -> bool:
        return handled(kind, "CANCELLED") == before + 1

    await until(counted)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_its_service_ends_is_unavailable(
    channel: grpc.aio.Channel, echo: Echo, kind: str
) -> None:
    reading = asyncio.ensure_future(answers(start(channel, kind, b"wait")))
    await echo.waiting.wait()
    echo.tasks[0].cancel()
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await reading
    assert ended.value.code() is Code.UNAVAILABLE


async def test_methods_that_do_not_exist_share_one_label(channel: grpc.aio.Channel) -> None:
    before = handled("unknown", "UNIMPLEMENTED", service="unknown")
    with pytest.raises(grpc.aio.AioRpcError) as unknown:
        await start_unknown(channel)
    assert unknown.value.code() is Code.UNIMPLEMENTED
    assert handled("unknown", "UNIMPLEMENTED", service="unknown") == before + 1
    assert handled("Method", "UNIMPLEMENTED", service="no.Such") == 0


@pytest.mark.parametrize("kind", KINDS)
async def test_logs_within_a_call_know_its_method_and_trace(
    channel: grpc.aio.Channel, kind: str
) -> None:
    metadata = (("traceparent", "00-aa-bb-01"), ("other", "x"))
    answer = (await answers(start(channel, kind, b"context", metadata=metadata)))[-1]
    assert json.loads(answer) == {"rpc": f"test.Echo/{kind}", "traceparent": "00-aa-bb-01"}


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
        assert "call again later" in each.result()


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
    assert "send fewer nodes" in answer


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
