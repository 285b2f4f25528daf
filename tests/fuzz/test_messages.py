"""Whatever comes by gRPC: it is read to its end, or refused in order."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from cli.up.processes import free_ports
from moorage.snapshot import Snapshot
from moorage.v1 import binder_pb2, filter_pb2, replica_pb2, scorer_pb2, types_pb2
from moorage_host.plugins import Replica
from moorage_host.rpc.state import MISTAKES, apply_state
from sandbox.apiserver import ApiServer
from tests.fuzz.cases import check_growth, limits, messages
from tools.inprocess.api import Api
from tools.inprocess.gateway import binder_service, filter_service, scorer_service

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = 4096
SECONDS = 5.0
BUGS = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}
OF_THE_CLIENT = "Internal error from Core"
"""What grpc's client reports when a stream ends while it writes to it."""

OF_A_BUSY_MACHINE = "longer than its time budget"

REPLICA = replica_pb2.DESCRIPTOR.services_by_name["ReplicaService"]
SERVICES: Mapping[str, Sequence[ServiceDescriptor]] = {
    "filter": (filter_pb2.DESCRIPTOR.services_by_name["FilterService"], REPLICA),
    "scorer": (scorer_pb2.DESCRIPTOR.services_by_name["ScorerService"], REPLICA),
    "binder": (binder_pb2.DESCRIPTOR.services_by_name["BinderService"],),
}
METHODS = [
    (name, method)
    for name, services in SERVICES.items()
    for service in services
    for method in service.methods
    if method.client_streaming or not method.server_streaming  # others go on for ever
]


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, Any, list[bytes]]:
    """Draw a service, a method, and what is sent to it, of which a part may be no message."""
    name, method = draw(st.sampled_from(METHODS))
    drawn = messages(GetMessageClass(method.input_type))
    kind = drawn.map(lambda message: message.SerializeToString())
    return (
        name,
        method,
        draw(st.lists(kind | kind | st.binary(max_size=20), min_size=1, max_size=6)),
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def channels(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Mapping[str, grpc.aio.Channel]]:
    """The three services, with an API server."""
    folder = tmp_path_factory.mktemp("fuzz")
    (port,) = free_ports(1)
    async with (
        ApiServer() as server,
        filter_service() as filters,
        scorer_service() as scorer,
        AsyncExitStack() as stack,
    ):
        (folder / "kubeconfig").write_text(server.kubeconfig())
        Api(server).node("n1")
        await stack.enter_async_context(binder_service(folder, port=port))
        places = {"filter": filters, "scorer": scorer, "binder": f"127.0.0.1:{port}"}
        yield {
            name: await stack.enter_async_context(grpc.aio.insecure_channel(place))
            for name, place in places.items()
        }


@given(call=calls())
async def test_every_message_is_answered_or_refused(
    channels: Mapping[str, grpc.aio.Channel], call: tuple[str, Any, list[bytes]]
) -> None:
    name, method, sent = call
    path = f"/{method.containing_service.full_name}/{method.name}"
    async with limits():
        try:
            answers = await exchanged(channels[name], path, sent, streams=method.server_streaming)
        except grpc.aio.AioRpcError as error:
            readable = all(can_read(each, GetMessageClass(method.input_type)) for each in sent)
            check_refusal(path, error, readable=readable)
            return
    for answer in answers:
        check(path, GetMessageClass(method.output_type)(), answer)


async def test_calls_leave_nothing_behind(channels: Mapping[str, grpc.aio.Channel]) -> None:
    async def again(call: tuple[str, Any, list[bytes]]) -> None:
        name, method, sent = call
        streams = method.server_streaming
        path = f"/{method.containing_service.full_name}/{method.name}"
        with suppress(grpc.aio.AioRpcError):
            await exchanged(channels[name], path, sent, streams=streams)

    await check_growth(calls(), again)


async def exchanged(
    channel: grpc.aio.Channel, path: str, sent: Sequence[bytes], *, streams: bool
) -> list[bytes]:
    """Send messages, the first alone if the method takes one; return the answers."""
    if not streams:
        unary: Any = channel.unary_unary(path)
        return [await unary(sent[0], timeout=SECONDS)]

    async def each() -> AsyncIterator[Any]:
        for message in sent:
            yield message

    call: Any = channel.stream_stream(path)(each(), timeout=SECONDS)
    return [answer async for answer in call]


def can_read(data: bytes, kind: type[Message]) -> bool:
    with suppress(Exception):
        kind().ParseFromString(data)
        return True
    return False


def check_refusal(path: str, error: grpc.aio.AioRpcError, *, readable: bool) -> None:
    """Refuse an error that says that something of ours failed, or took too long."""
    is_bug = error.code() in BUGS and readable and error.details() != OF_THE_CLIENT
    assert not is_bug, f"{error.code().name} of {path}: {error.details()}"
    assert error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED, f"{path} hangs"


def check(path: str, message: Any, answer: bytes) -> None:
    """Refuse a result that says that something of ours failed."""
    message.ParseFromString(answer)
    fields = {field.name for field in message.DESCRIPTOR.fields}
    result = message.result if "result" in fields else message
    if "status" in {field.name for field in result.DESCRIPTOR.fields}:
        code = {each.value[0]: each for each in grpc.StatusCode}[result.status.code]
        assert code not in BUGS or OF_A_BUSY_MACHINE in result.status.message, (path, result)


@given(states=st.lists(messages(types_pb2.State), max_size=5))
async def test_a_replica_that_was_told_changes_is_as_one_built_at_once(states: list[Any]) -> None:
    replica = Replica(max_nodes=ROWS)
    async with limits():
        for state in states:
            try:
                await apply_state(replica, state)
            except MISTAKES:
                break
            replica.generation = 1
        assert replica.snapshot.capacity <= ROWS
        with suppress(ValueError):  # a refused or unfinished series may leave names twice
            replica.snapshot.check_names()
            compare(replica.snapshot)


def compare(snapshot: Snapshot) -> None:
    """Refuse a snapshot that differs from one with the same nodes and pods."""
    built, nodes = Snapshot(ROWS), list(snapshot.nodes())
    for node in nodes:
        built.set_node(node.row, node.manifest)
        for pod in node.pods:
            built.place_pod(node.row, pod)
    assert (len(built), built.pod_count) == (len(snapshot), snapshot.pod_count)
    left, right = snapshot.nodes(), built.nodes()
    for resource in {r for node in nodes for r in (*node.allocatable, *node.requested)} | {"x"}:
        for column in ("allocatable", "requested", "nonzero_requested"):
            some, others = (getattr(each, column)(resource).tolist() for each in (left, right))
            assert some == others, (column, resource)
    for some, other in zip(left, right, strict=True):
        assert some.name == other.name
        assert sorted(pod.uid for pod in some.pods) == sorted(pod.uid for pod in other.pods)
    assert left.names == right.names
    assert left.taints().values is not None
