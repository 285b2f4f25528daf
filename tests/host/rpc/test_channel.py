import socket
from typing import Any

import grpc
import pytest

from moorage.errors import ConfigurationError
from moorage.v1.binder_pb2 import BindRequest, BindResponse, Outcome
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.rpc.channel import _OPTIONS, connect
from moorage_host.rpc.serve import running
from tests.host.rpc.support import settings
from tests.host.rpc.tiny import SERVICE, TinyServicer, tiny
from tools.waiting import until


@pytest.mark.parametrize(
    "target", ["filter", "http://filter:50051", "filter:grpc", "", "filter:", "dns://filter:50051"]
)
async def test_a_target_of_another_form_is_refused(target: str) -> None:
    with pytest.raises(ConfigurationError, match="host:port"):
        connect(target)


@pytest.mark.parametrize("form", ["{}", "dns:///{}"])
async def test_both_forms_of_a_target_reach_the_service(form: str) -> None:
    async with (
        running(tiny(), settings()) as server,
        connect(form.format(server.grpc), SERVICE) as channel,
    ):
        answer = await BinderServiceStub(channel).Bind(BindRequest(node="n1"), timeout=20)
    assert answer.outcome == Outcome.OUTCOME_BOUND


class Flaky(TinyServicer):
    """Is unavailable twice, then answers."""

    failures = 2

    async def Bind(self, request: BindRequest, context: Any) -> BindResponse:
        if self.failures:
            self.failures -= 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        return BindResponse(outcome=Outcome.OUTCOME_BOUND)


@pytest.mark.parametrize("size", [0, 2 << 20])
async def test_unavailable_is_tried_again_even_with_a_large_request(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("tests.host.rpc.tiny.TinyServicer", Flaky)
    async with running(tiny(), settings()) as server, connect(server.grpc) as channel:
        request = BindRequest(annotations={"a": "x" * size})
        answer = await BinderServiceStub(channel).Bind(request, timeout=20)
    assert answer.outcome == Outcome.OUTCOME_BOUND


def test_a_service_that_was_killed_is_tried_again_at_least_every_second() -> None:
    options = dict(_OPTIONS)
    assert options["grpc.initial_reconnect_backoff_ms"] <= 500
    assert options["grpc.max_reconnect_backoff_ms"] <= 1_000
    # An attempt on a busy machine, with its handshake, must not be cut by that.
    assert options["grpc.min_reconnect_backoff_ms"] >= 2_000


async def test_a_new_channel_does_not_wait_for_the_backoff_of_an_older_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with connect(f"127.0.0.1:{port}") as older:
        assert await is_unavailable(BinderServiceStub(older))
        async with (
            running(tiny(), settings(port=port)) as server,
            connect(server.grpc) as channel,
        ):
            answer = await BinderServiceStub(channel).Bind(BindRequest(), timeout=20)
    assert answer.outcome == Outcome.OUTCOME_BOUND


async def test_a_service_that_drains_gets_no_new_calls_from_who_minds_its_health() -> None:
    async with running(tiny(), settings()) as server, connect(server.grpc, SERVICE) as channel:
        stub = BinderServiceStub(channel)
        await stub.Bind(BindRequest(node="n1"), timeout=20)
        await server.health.shut_down()
        await until(lambda: is_unavailable(stub))


async def is_unavailable(stub: BinderServiceStub) -> bool:
    try:
        await stub.Bind(BindRequest(node="n1"), timeout=20)
    except grpc.aio.AioRpcError as error:
        return error.code() is grpc.StatusCode.UNAVAILABLE
    return False
