"""Channels, streams, errors and the settings of gRPC."""

import asyncio
import os
import socket
import subprocess
import sys
from typing import Any

import grpc
import grpc.aio
import msgspec
import pytest
import uvloop

from moorage.errors import (
    ConfigurationError,
    NoStateError,
    PluginFailedError,
    PluginLoadError,
    UnknownNameError,
)
from moorage.units.quantity import QuantityError
from moorage.v1.binder_pb2 import BindRequest, BindResponse, Outcome
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.rpc.channel import _OPTIONS, connect
from moorage_host.rpc.errors import LONGEST_MESSAGE, CallError, reason_of, status_of
from moorage_host.rpc.serve import running
from moorage_host.rpc.stream import MessageStream
from tests.host.rpc.support import settings
from tests.host.rpc.tiny import SERVICE, TinyServicer, tiny
from tools.waiting import until


@pytest.mark.parametrize(
    "target", ["filter", "http://filter:50051", "filter:grpc", "", "filter:", "dns://filter:50051"]
)
async def test_a_target_of_another_form_is_refused(target: str) -> None:
    with pytest.raises(ConfigurationError, match="host:port"):
        connect(target)


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
    async with running(tiny(), settings()) as server, connect(f"dns:///{server.grpc}") as channel:
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


SHOW = """
import importlib, os, sys
from importlib.abc import MetaPathFinder

class Show(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "grpc":
            print(*(os.environ.get(f"GRPC_{name}") for name in (
                "VERBOSITY", "EXPERIMENTS", "ENABLE_FORK_SUPPORT", "SSL_CIPHER_SUITES",
            )))

sys.meta_path.insert(0, Show())
importlib.import_module(sys.argv[1])
sys.modules["grpc"].insecure_channel("localhost:1").close()  # knows the experiments that are set
"""


def test_a_process_has_grpc_s_settings_before_grpc_is_imported() -> None:
    """That all import them first is in tests/host/process/test_process.py."""
    command = [sys.executable, "-c", SHOW, "services.binder.__main__"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    shown = subprocess.run(command, env=own, check=True, capture_output=True, text=True, timeout=60)
    experiments = "-event_engine_client,-event_engine_listener"
    assert shown.stdout.split() == ["ERROR", experiments, "0", "ECDHE-PSK-CHACHA20-POLY1305"]
    assert shown.stderr == ""


Code = grpc.StatusCode


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CallError(Code.NOT_FOUND, "no"), Code.NOT_FOUND),
        (ConfigurationError("no"), Code.INVALID_ARGUMENT),
        (PluginLoadError("no"), Code.INVALID_ARGUMENT),
        (UnknownNameError("no"), Code.NOT_FOUND),
        (NoStateError("no"), Code.FAILED_PRECONDITION),
        (PluginFailedError("P", "Filter", "no"), Code.INTERNAL),
        (msgspec.DecodeError("no"), Code.INVALID_ARGUMENT),
        (msgspec.ValidationError("no"), Code.INVALID_ARGUMENT),
        (QuantityError("no"), Code.INVALID_ARGUMENT),
    ],
)
def test_an_expected_error_keeps_its_text(error: Exception, code: Code) -> None:
    assert status_of(error) == (code, str(error))


NO_POD = CallError(Code.NOT_FOUND, "no such pod", reason="NO_POD")


@pytest.mark.parametrize(
    "error",
    [
        KeyError("secret"),
        ValueError("secret"),
        OSError(5, "secret"),
        ExceptionGroup("a bug beside a refusal", [NO_POD, KeyError("secret")]),
    ],
)
def test_an_unexpected_error_says_nothing_of_its_own(error: Exception) -> None:
    code, message = status_of(error)
    assert code is Code.INTERNAL
    assert "secret" not in message


def test_running_out_of_time_has_a_stable_text() -> None:
    assert status_of(TimeoutError("after 0.123 s")) == status_of(TimeoutError())
    assert status_of(TimeoutError())[0] is Code.DEADLINE_EXCEEDED


def test_an_error_in_a_task_group_counts_as_if_it_had_none() -> None:
    group = ExceptionGroup("tasks", [ExceptionGroup("tasks", [NO_POD])])
    assert (*status_of(group), reason_of(group)) == (Code.NOT_FOUND, "no such pod", "NO_POD")


def test_an_endless_message_is_cut() -> None:
    _, message = status_of(CallError(Code.INVALID_ARGUMENT, "x" * 100_000))
    assert message == "x" * (LONGEST_MESSAGE - 3) + "..."


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
