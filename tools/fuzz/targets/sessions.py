"""Bytes on every method of the three services, over gRPC, as a session or a call by hand."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from cli.up.processes import free_ports
from moorage.v1 import binder_pb2, filter_pb2, scorer_pb2
from sandbox.apiserver import ApiServer
from tools.fuzz.targets.target import Target, mutated_messages, require, unpacked
from tools.inprocess.api import Api
from tools.inprocess.gateway import binder_service, filter_service, scorer_service

_BUGS = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}
_SECONDS = 5.0
_OF_THE_CLIENT = "Internal error from Core"
"""What grpc's client reports when a stream ends while it writes to it."""
_OF_A_BUSY_MACHINE = "longer than its time budget"


class Method:
    """A method, and the messages of its call and its answer."""

    def __init__(self, service: str, name: str) -> None:
        files = {"Filter": filter_pb2, "Scorer": scorer_pb2, "Binder": binder_pb2}
        found = (
            files[service].DESCRIPTOR.services_by_name[f"{service}Service"].methods_by_name[name]
        )
        self.path = f"{_prefix(service)}{name}"
        self.request = GetMessageClass(found.input_type)
        self.response = GetMessageClass(found.output_type)
        self.streams = found.server_streaming


def _prefix(service: str) -> str:
    return f"/moorage.v1.{service}Service/"


METHODS = {
    b"f": Method("Filter", "Session"),
    b"s": Method("Scorer", "Session"),
    b"b": Method("Binder", "Session"),
    b"t": Method("Binder", "FollowState"),
    b"F": Method("Filter", "Filter"),
    b"S": Method("Scorer", "Score"),
    b"B": Method("Binder", "Bind"),
    b"G": Method("Filter", "GetState"),
    b"E": Method("Binder", "Barrier"),
    b"R": Method("Binder", "RetryPods"),
}
"""The first byte of a case; messages follow, each after its length."""


class Sessions(Target):
    """The first byte chooses the method."""

    name = "sessions"
    share = 10
    seconds = 8e-3
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
            _prefix("Filter"): await stack.enter_async_context(filter_service()),
            _prefix("Scorer"): await stack.enter_async_context(scorer_service()),
            _prefix("Binder"): f"127.0.0.1:{port}",
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
