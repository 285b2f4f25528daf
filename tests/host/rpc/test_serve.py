import asyncio
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from moorage.v1.binder_pb2 import BindRequest, Outcome
from moorage.v1.binder_pb2_grpc import BinderServiceStub, add_BinderServiceServicer_to_server
from moorage_host.rpc.channel import connect
from moorage_host.rpc.serve import ServiceDefinition, running
from tests.host.rpc.support import settings
from tests.host.rpc.tiny import SERVICE, TinyServicer, tiny
from tools.waiting import until

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def bind(channel: grpc.aio.Channel, node: str = "n1") -> Any:
    return BinderServiceStub(channel).Bind(BindRequest(node=node), timeout=20)


async def health(channel: grpc.aio.Channel, service: str) -> Any:
    stub: Any = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=20)
    return answer.status


async def ready(admin: str) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as http, http.get(f"http://{admin}/readyz") as answer:
        return answer.status, await answer.json()


async def test_a_list_of_health_is_not_implemented_and_logs_nothing(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(tiny(), settings()) as server, connect(server.grpc) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.List(health_pb2.HealthListRequest(), timeout=20)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert refused.value.details() == "List is not implemented; call Check"
    assert "Traceback" not in caplog.text + "".join(capsys.readouterr())


async def test_no_new_calls_get_in_while_the_last_ones_finish() -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running(tiny(), settings()))
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            call = asyncio.ensure_future(bind(channel, "stuck"))
            await server.servicer.binding.wait()
            draining = asyncio.create_task(stack.aclose())
            await until(lambda: refused(server.grpc))
            assert not draining.done()
            server.servicer.unstuck.set()
            assert (await call).outcome == Outcome.OUTCOME_BOUND
            await draining


async def refused(address: str) -> bool:
    async with grpc.aio.insecure_channel(address) as late:
        try:
            # One that comes while the port is being closed may get no answer at all.
            async with asyncio.timeout(0.5):
                await bind(late)
        except grpc.aio.AioRpcError as error:
            return error.code() is grpc.StatusCode.UNAVAILABLE
        except TimeoutError:
            return False
    return False


async def test_calls_that_outlast_the_grace_are_ended() -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running(tiny(), settings(shutdown_grace=0.01)))
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            call = asyncio.ensure_future(bind(channel, "stuck"))
            await server.servicer.binding.wait()
            await stack.aclose()
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await call
    assert ended.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


async def test_during_the_delay_a_service_is_unready_but_still_answers() -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running(tiny(), settings(shutdown_delay=60.0)))
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            await bind(channel)
            draining = asyncio.create_task(stack.aclose())
            await until(lambda: unready(server.admin))
            _, answer = await ready(server.admin)
            assert answer["checks"][0]["reason"] == "the process is shutting down"
            assert await health(channel, SERVICE) == NOT_SERVING
            assert await health(channel, "") == NOT_SERVING
            assert (await bind(channel)).outcome == Outcome.OUTCOME_BOUND
            draining.cancel()
            await asyncio.wait([draining])
    assert server.servicer.stopped  # even though the delay was cut short


async def unready(admin: str) -> bool:
    return (await ready(admin))[0] == 503


async def test_clients_that_watch_the_health_do_not_hold_up_the_drain() -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running(tiny(), settings(shutdown_grace=60.0)))
        async with connect(server.grpc, SERVICE) as channel:
            await bind(channel)
            async with asyncio.timeout(20):
                await stack.aclose()


async def test_sessions_outlive_the_age_at_which_connections_are_renewed() -> None:
    async with (
        running(tiny(), settings(max_connection_age=0.2)) as server,
        grpc.aio.insecure_channel(server.grpc) as channel,  # one that does not repeat calls
    ):
        session = asyncio.ensure_future(bind(channel, "slow"))
        await server.servicer.binding.wait()
        first = server.servicer.peers[-1]

        async def on_a_new_connection() -> bool:
            await bind(channel)
            return server.servicer.peers[-1] != first

        await until(on_a_new_connection)
        server.servicer.draining.set()
        assert (await session).outcome == Outcome.OUTCOME_BOUND


async def test_a_limit_on_calls_under_way_turns_more_away() -> None:
    async with (
        running(tiny(), settings(max_concurrent_rpcs=1)) as server,
        grpc.aio.insecure_channel(server.grpc) as channel,
    ):
        call = asyncio.ensure_future(bind(channel, "slow"))
        await server.servicer.binding.wait()
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await bind(channel)
        assert refusal.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        server.servicer.draining.set()
        await call


async def test_a_message_beyond_the_limit_ends_its_call_and_no_other() -> None:
    request = BindRequest(annotations={"a": "x" * (9 << 20)})
    limited = settings(max_message_bytes=8 << 20)
    async with running(tiny(), limited) as server, connect(server.grpc) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await BinderServiceStub(channel).Bind(request, timeout=20)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await bind(channel)).outcome == Outcome.OUTCOME_BOUND


async def test_connections_beyond_the_limit_are_closed_and_others_work() -> None:
    async with (
        running(tiny(), settings(max_connections=1)) as server,
        connect(server.grpc) as channel,
    ):
        assert (await bind(channel)).outcome == Outcome.OUTCOME_BOUND
        async with connect(server.grpc) as other:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await BinderServiceStub(other).Bind(BindRequest(), timeout=2)
        assert refused.value.code() is not grpc.StatusCode.OK
        assert (await bind(channel)).outcome == Outcome.OUTCOME_BOUND


class Ailing(TinyServicer):
    """Its background task fails as soon as somebody binds."""

    async def start(self) -> None:
        self.stack = AsyncExitStack()
        group = await self.stack.enter_async_context(asyncio.TaskGroup())
        group.create_task(self.fail())

    async def fail(self) -> None:
        await self.binding.wait()
        raise KeyError("background")

    async def stop(self) -> None:
        await self.stack.aclose()


async def test_a_failing_background_task_ends_the_service_with_its_error() -> None:
    definition = ServiceDefinition(
        name="ailing",
        grpc_names=(SERVICE,),
        create=Ailing,
        register=add_BinderServiceServicer_to_server,
    )
    with pytest.raises(ExceptionGroup) as failed:  # noqa: PT012 - two blocks make one service
        async with (
            running(definition, settings()) as server,
            grpc.aio.insecure_channel(server.grpc) as channel,
        ):
            call = asyncio.ensure_future(bind(channel, "slow"))
            await asyncio.wait([call])
    assert failed.group_contains(KeyError, match="background")
