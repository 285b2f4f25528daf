"""Bytes on every method of the three services, over gRPC, as a session or a call by hand."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from cli.up.processes import free_ports
from moorage.v1 import binder_pb2, filter_pb2, scorer_pb2
from sandbox.apiserver import ApiServer
from tools.fuzz.targets.mutations import mutated_messages, unpacked
from tools.fuzz.targets.target import Target, require
from tools.inprocess.api import Api
from tools.inprocess.gateway import binder_service, filter_service, scorer_service

_BUGS = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}
_SECONDS = 5.0
_OF_THE_CLIENT = "Internal error from Core"
"""What grpc's client reports when a stream ends while it writes to it."""
_OF_A_BUSY_MACHINE = "longer than its time budget"


@dataclass(frozen=True, slots=True)
class Method:
    """A method, and the messages of its call and its answer."""

    path: str
    request: Callable[[], Message]
    response: Callable[[], Message]
    streams: bool = False


_FILTER, _SCORER, _BINDER = (f"/moorage.v1.{n}Service/" for n in ("Filter", "Scorer", "Binder"))
METHODS = {
    b"f": Method(
        f"{_FILTER}Session",
        filter_pb2.FilterServiceSessionRequest,
        filter_pb2.FilterServiceSessionResponse,
        streams=True,
    ),
    b"s": Method(
        f"{_SCORER}Session",
        scorer_pb2.ScorerServiceSessionRequest,
        scorer_pb2.ScorerServiceSessionResponse,
        streams=True,
    ),
    b"b": Method(
        f"{_BINDER}Session",
        binder_pb2.BinderServiceSessionRequest,
        binder_pb2.BinderServiceSessionResponse,
        streams=True,
    ),
    b"t": Method(
        f"{_BINDER}FollowState",
        binder_pb2.BinderServiceFollowStateRequest,
        binder_pb2.BinderServiceFollowStateResponse,
        streams=True,
    ),
    b"F": Method(f"{_FILTER}Filter", filter_pb2.FilterRequest, filter_pb2.FilterResponse),
    b"S": Method(f"{_SCORER}Score", scorer_pb2.ScoreRequest, scorer_pb2.ScoreResponse),
    b"B": Method(f"{_BINDER}Bind", binder_pb2.BindRequest, binder_pb2.BindResponse),
    b"G": Method(
        f"{_FILTER}GetState",
        filter_pb2.FilterServiceGetStateRequest,
        filter_pb2.FilterServiceGetStateResponse,
    ),
    b"E": Method(
        f"{_BINDER}Barrier",
        binder_pb2.BinderServiceBarrierRequest,
        binder_pb2.BinderServiceBarrierResponse,
    ),
    b"R": Method(
        f"{_BINDER}RetryPods",
        binder_pb2.BinderServiceRetryPodsRequest,
        binder_pb2.BinderServiceRetryPodsResponse,
    ),
}
"""The first byte of a case; messages follow, each after its length."""


class Sessions(Target):
    """The first byte chooses the method."""

    name = "sessions"
    share = 10
    seconds = 8e-3
    packages = ("moorage", "moorage_host", "services")
    tokens = ('{"metadata":{"name":"n1"', '"allocatable":{"cpu":"', '{"profiles":[', "moorage")
    longest = 2048

    async def open(self, stack: AsyncExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = await stack.enter_async_context(ApiServer())
        (folder / "kubeconfig").write_text(server.kubeconfig())
        Api(server).node("n1")
        (port,) = free_ports(1)
        await stack.enter_async_context(binder_service(folder, port=port))
        addresses = {
            _FILTER: await stack.enter_async_context(filter_service()),
            _SCORER: await stack.enter_async_context(scorer_service()),
            _BINDER: f"127.0.0.1:{port}",
        }
        self._channels = {
            prefix: await stack.enter_async_context(grpc.aio.insecure_channel(address))
            for prefix, address in addresses.items()
        }

    async def case(self, data: bytes) -> None:
        method = METHODS.get(data[:1])
        if method is None:
            return
        messages = unpacked(data[1:])[:8]
        readable = [_can_read(each, method.request) for each in messages]
        channel = next(c for prefix, c in self._channels.items() if method.path.startswith(prefix))
        try:
            if method.streams:
                call: Any = channel.stream_stream(method.path)(_each(messages), timeout=_SECONDS)
                answers = [answer async for answer in call]
            else:
                unary: Any = channel.unary_unary(method.path)
                answers = [await unary(each, timeout=_SECONDS) for each in messages[:1]]
        except grpc.aio.AioRpcError as error:
            require(
                error.code() not in _BUGS or not all(readable) or error.details() == _OF_THE_CLIENT,
                f"{error.code().name} of {method.path}",
                error.details(),
            )
            require(error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED, f"{method.path} hangs")
            return
        for answer in answers:
            _check(method, method.response(), answer)

    def mutated(self, data: bytes, random: Random) -> bytes | None:
        method = METHODS.get(data[:1])
        if method is None:
            return random.choice(list(METHODS)) + data[1:]
        changed = mutated_messages(data[1:], random, method.request)
        return None if changed is None else data[:1] + changed


async def _each(messages: list[bytes]) -> AsyncIterator[Any]:
    for message in messages:
        yield message


def _can_read(data: bytes, kind: Callable[[], Message]) -> bool:
    try:
        kind().ParseFromString(data)
    except DecodeError:
        return False
    return True


def _check(method: Method, message: Any, answer: bytes) -> None:
    message.ParseFromString(answer)
    fields = {field.name for field in message.DESCRIPTOR.fields}
    result = message.result if "result" in fields else message
    if "status" in {field.name for field in result.DESCRIPTOR.fields}:
        known = {code.value[0]: code for code in grpc.StatusCode}
        code = known[result.status.code]
        fails = code in _BUGS and _OF_A_BUSY_MACHINE not in result.status.message
        require(not fails, f"{code.name} of a request of {method.path}", result.status)
