"""Bind plugins that read the snapshot, which a gateway sends."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import grpc
import grpc.aio
import pytest

from moorage import STATEFUL_SETS, Binding, BindPlugin, PluginFailedError, Refusal
from moorage.testing import make_binding, make_node, make_nodes, make_pod, run_pre_bind
from moorage.v1 import binder_pb2 as pb
from moorage.v1 import types_pb2
from moorage.v1.binder_pb2_grpc import BinderServiceStub
from moorage_host.kube import KubeClient
from moorage_host.rpc.errors import CallError
from services.binder.binding.outcomes import BindReason, BindResult
from services.binder.snapshots import Snapshots
from tools.inprocess.api import Api
from tools.inprocess.binder import World, policy_of, refused, serving


class Counts(BindPlugin):
    """Refuses binds to nodes that the snapshot does not have."""

    reads_snapshot: ClassVar[bool] = True

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        known = binding.nodes.get(binding.node) is not None
        return None if known else Refusal(f"{len(binding.nodes)} nodes, and not this one")


class Unaware(BindPlugin):
    """Reads what it did not ask for."""

    async def pre_bind(self, binding: Binding) -> Refusal | None:
        return Refusal(str(len(binding.nodes)))


COUNTS = policy_of("Counts")


def state(generation: int, *names: str, **more: Any) -> types_pb2.State:
    nodes = [
        types_pb2.NodeRow(row=row, json=f'{{"metadata":{{"name":"{name}"}}}}'.encode())
        for row, name in enumerate(names)
    ]
    return types_pb2.State(generation=generation, nodes=nodes, **more)


class Sent:
    """A stream of states into the snapshots of a binder."""

    def __init__(self, snapshots: Snapshots, holder: str = "") -> None:
        self._holder = holder
        self._requests: asyncio.Queue[types_pb2.State | None] = asyncio.Queue()
        self._answers = snapshots.follow(self._read(), ())

    async def _read(self) -> AsyncIterator[pb.BinderServiceFollowStateRequest]:
        while (change := await self._requests.get()) is not None:
            yield pb.BinderServiceFollowStateRequest(state=change, holder=self._holder)

    async def answer(self) -> pb.BinderServiceFollowStateResponse:
        return await anext(self._answers)

    async def send(self, change: types_pb2.State) -> int:
        self._requests.put_nowait(change)
        return int((await self.answer()).acknowledgement.generation)

    async def end(self) -> None:
        self._requests.put_nowait(None)
        with pytest.raises(StopAsyncIteration):
            await self.answer()


@asynccontextmanager
async def sending(world: World, holder: str = "") -> AsyncIterator[Sent]:
    sent = Sent(world.snapshots, holder)
    assert (await sent.answer()).hello.replica
    yield sent
    await sent.end()


@pytest.fixture
def world(client: KubeClient) -> World:
    return World(client, plugins=(Counts, Unaware))


async def test_a_bind_waits_for_the_state_of_its_generation(world: World, api: Api) -> None:
    pod = api.pod()
    async with sending(world) as sent:
        assert await sent.send(state(1, full=True, partial=True)) == 0
        assert await sent.send(state(2, "node-b")) == 2
        early = await refused(world.bind(pod, policy=COUNTS, generation=2))
        assert str(early).endswith("plugin Counts: 1 nodes, and not this one")
        bind = world.begin(pod, policy=COUNTS, generation=3)
        await asyncio.sleep(0)
        assert await sent.send(state(3, "node-a")) == 3
        assert await bind is BindResult.BOUND


async def test_a_bind_sees_the_state_of_its_own_gateway(world: World, api: Api) -> None:
    """A gateway that stands by counts generations of its own, which may be far higher."""
    async with sending(world, "standby") as standby, sending(world, "leader") as leader:
        await standby.send(state(900, "node-b", full=True))
        assert await leader.send(state(2, "node-b", "node-c", full=True)) == 2
        of_leader: Any = {"policy": COUNTS, "holder": "leader"}
        early = await refused(world.bind(api.pod("early"), generation=2, **of_leader))
        assert "2 nodes, and not this one" in str(early)
        bind = world.begin(api.pod("late"), generation=3, **of_leader)
        await asyncio.sleep(0)
        await leader.send(state(3, "node-a", "node-b"))
        assert await bind is BindResult.BOUND
        of_standby: Any = {"policy": COUNTS, "holder": "standby"}
        other = await refused(world.bind(api.pod("other"), generation=3, **of_standby))
        assert "1 nodes, and not this one" in str(other)


async def test_a_state_that_nobody_keeps_up_to_date_is_dropped(world: World, api: Api) -> None:
    async with sending(world) as sent:
        await sent.send(state(7, "node-a", full=True))
    error = await refused(world.bind(api.pod(), policy=COUNTS, generation=1, seconds=1.0))
    assert error.reason is BindReason.UNAVAILABLE
    assert "the binder has no state of the cluster for plugins" in str(error)
    assert api.node_of() is None


async def test_plugins_that_read_no_snapshot_wait_for_none(world: World, api: Api) -> None:
    error = await refused(world.bind(api.pod(), policy=policy_of("Unaware"), generation=9))
    assert "the snapshot was not sent: the plugin needs `reads_snapshot = True`" in str(error)


async def test_a_malformed_state_ends_the_stream(kubeconfig: Path) -> None:
    async with serving(kubeconfig) as (_, channel):
        call = BinderServiceStub(channel).FollowState()
        pods = [types_pb2.PlacedPod(row=5, json=b"{}")]
        await call.write(pb.BinderServiceFollowStateRequest(state=types_pb2.State(pods=pods)))
        with pytest.raises(grpc.aio.AioRpcError, match="cannot apply the state") as caught:
            async for _ in call:
                pass
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_authors_bring_the_snapshot_along() -> None:
    nodes = make_nodes(make_node("n1"), make_node("n2"))
    assert run_pre_bind(Counts(), make_binding(make_pod(), "n1", nodes=nodes)) is None
    refusal = run_pre_bind(Counts(), make_binding(make_pod(), "gone", nodes=nodes))
    assert refusal == Refusal("2 nodes, and not this one")
    with pytest.raises(PluginFailedError, match="the snapshot was not sent"):
        run_pre_bind(Counts(), make_binding(make_pod(), "n1"))


def test_a_bind_plugin_that_reads_objects_needs_the_snapshot() -> None:
    with pytest.raises(TypeError, match=r"Reads reads further objects, .* reads_snapshot = True"):

        class Reads(BindPlugin):
            reads = (STATEFUL_SETS,)

            async def post_bind(self, binding: Binding) -> None: ...


async def test_a_stream_that_began_later_hides_no_gateways_state() -> None:
    snapshots = Snapshots(most=2)
    gateway, by_hand = Sent(snapshots), Sent(snapshots)
    for stream in (gateway, by_hand):
        assert (await stream.answer()).HasField("hello")
    await gateway.send(state(3, "n1", "n2", full=True))
    await by_hand.send(state(3, "x1", full=True))
    soon = time.monotonic() + 10
    assert len(await snapshots.at_least("", 2, soon)) == 2
    third = Sent(snapshots)
    with pytest.raises(CallError, match="no more may be"):
        await third.answer()
    await gateway.end()
    assert len(await snapshots.at_least("", 2, soon)) == 1
    await by_hand.end()
