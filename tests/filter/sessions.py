"""A filter service in this process, and sessions with it as gateways have them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import msgspec

from moorage import FilterPlugin
from moorage.v1 import filter_pb2 as pb
from moorage.v1 import replica_pb2, types_pb2
from moorage.v1.filter_pb2_grpc import FilterServiceStub
from moorage.v1.replica_pb2_grpc import ReplicaServiceStub
from moorage_host.plugins.registry import Registry
from moorage_host.rpc.serve import running
from moorage_host.rpc.settings import CycleSettings
from services.filter.servicer import filter_service

POD = {"metadata": {"name": "p", "uid": "1"}, "spec": {"schedulerName": "moorage"}}


def policy(*plugins: type[FilterPlugin], budget: float = 10) -> types_pb2.Policy:
    """Return a policy with one profile."""
    entries = [
        {"name": each.name, "failurePolicy": "Abort", "timeBudgetSeconds": budget}
        for each in plugins
    ]
    content = {"profiles": [{"name": "moorage", "plugins": entries}]}
    return types_pb2.Policy(revision="1", json=msgspec.json.encode(content))


def full_state(
    count: int, *plugins: type[FilterPlugin], prefix: str = "n", budget: float = 10
) -> types_pb2.State:
    """Return a full snapshot with so many nodes, n0 and so on."""
    nodes = (msgspec.json.encode({"metadata": {"name": f"{prefix}{i}"}}) for i in range(count))
    return types_pb2.State(
        generation=1,
        full=True,
        policy=policy(*plugins, budget=budget),
        nodes=[types_pb2.NodeRow(row=row, json=node) for row, node in enumerate(nodes)],
    )


def cycle(**changes: Any) -> types_pb2.Cycle:
    """Return a cycle on the first node."""
    pod = types_pb2.Pod(json=msgspec.json.encode(POD))
    made = types_pb2.Cycle(
        **{"id": 1, "profile": "moorage", "pod": pod, "candidates": b"\x01", **changes}
    )
    made.timeout.FromSeconds(20)
    return made


class Session:
    """An open session."""

    def __init__(self, stub: Any) -> None:
        self._requests: asyncio.Queue[replica_pb2.SessionRequest | None] = asyncio.Queue()
        self._call = stub.Session(self._all())

    async def _all(self) -> AsyncIterator[replica_pb2.SessionRequest]:
        while (request := await self._requests.get()) is not None:
            yield request

    async def answer(self) -> replica_pb2.SessionResponse:
        """Read the next answer."""
        async with asyncio.timeout(20):
            answer: replica_pb2.SessionResponse = await self._call.read()
        return answer

    async def ask(self, **request: Any) -> replica_pb2.SessionResponse:
        """Send a request and read its answer."""
        self._requests.put_nowait(replica_pb2.SessionRequest(**request))
        return await self.answer()

    async def end(self) -> None:
        """End the session, and wait until the service has."""
        self._requests.put_nowait(None)
        while await self._call.read() is not grpc.aio.EOF:
            pass


class Service:
    """A running service."""

    def __init__(self, channel: grpc.aio.Channel, admin: str) -> None:
        self.channel = channel
        self.admin = admin
        self.stub: Any = ReplicaServiceStub(channel)
        self.by_hand: Any = FilterServiceStub(channel)

    async def session(self, state: types_pb2.State | None = None) -> Session:
        """Open a session, and send its state."""
        session = Session(self.stub)
        assert (await session.answer()).HasField("hello")
        if state is not None:
            answer = await session.ask(state=state)
            assert not answer.acknowledgement.policy_error
        return session

    async def filter(self, names: Sequence[str] = (), **fields: Any) -> pb.FilterResponse:
        """Filter by hand."""
        pod = types_pb2.Pod(json=msgspec.json.encode(POD))
        request = pb.FilterRequest(pod=pod, node_names=names, **fields)
        answer: pb.FilterResponse = await self.by_hand.Filter(request, timeout=100)
        return answer


@asynccontextmanager
async def filtering(*plugins: type[FilterPlugin], **changes: Any) -> AsyncIterator[Service]:
    """Run a filter service with these plugins and settings."""
    free = {"host": "127.0.0.1", "admin_host": "127.0.0.1", "port": 0, "admin_port": 0}
    quick = {"shutdown_delay": 0.0, "shutdown_grace": 0.0}
    settings = CycleSettings(**{**free, **quick, **changes})
    registry = Registry(FilterPlugin, plugins)
    definition = filter_service(settings, registry)
    async with (
        running(definition, settings) as server,
        grpc.aio.insecure_channel(server.grpc) as channel,
    ):
        yield Service(channel, server.admin)
