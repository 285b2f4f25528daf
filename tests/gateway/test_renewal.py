"""The gateway's certificate is renewed while work is under way, and all is answered where it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
from prometheus_client import REGISTRY

from moorage.v1 import binder_pb2 as pb
from moorage.v1 import binder_pb2_grpc
from moorage_host.rpc.credentials import ServerCredentials
from moorage_host.tls.certificate import Certificates
from tests.gateway.binding.test_bind_sessions import Odd
from tools.inprocess.certificates import authority, write_folder
from tools.inprocess.gateway import (
    Gateway,
    bind,
    filter_service,
    gateway,
    pod,
    ready,
    scorer_service,
)
from tools.waiting import until

OURS = authority()
NAMES = ("gateway", "scheduler", "operator", "filter", "scorer", "binder")
IDENTITIES = tuple(f"moorage-{name}" for name in NAMES)


def renew(folder: Path) -> Path:
    """Write a new certificate, with which its owner may do everything."""
    return write_folder(folder, OURS, *IDENTITIES, "127.0.0.1")


def ended_sessions() -> float:
    labels = {"grpc_service": "moorage.v1.ReplicaService", "grpc_method": "Session"}
    return REGISTRY.get_sample_value("grpc_server_handling_seconds_count", labels) or 0.0


async def test_a_session_that_is_replaced_answers_its_cycle(tmp_path: Path) -> None:
    cycles: list[Any] = []
    released = asyncio.Event()

    async def gate(request: Any) -> bool:
        if request.HasField("cycle"):
            cycles.append(request.cycle)
            await released.wait()
        return True

    services, ours = renew(tmp_path / "services"), renew(tmp_path / "ours")
    async with (
        filter_service(gate=gate, tls=services) as filters,
        scorer_service(tls=services) as scorer,
        gateway(
            tmp_path, filters=filters, scorer=scorer, tls=ours, tls_reload_interval=0.01
        ) as process,
    ):
        await process.node("n1")
        await ready(process)
        ended = ended_sessions()
        held = asyncio.create_task(process.filter(pod("held"), "n1"))
        await until(lambda: len(cycles) == 1)
        renew(ours)
        await until(lambda: process.sample("moorage_sessions_opened_total", service="filter") == 2)
        assert not held.done()
        released.set()
        assert (await held)["NodeNames"] == ["n1"]
        await until(lambda: ended_sessions() > ended)  # now that it has answered
        assert (await process.filter(pod("next"), "n1"))["NodeNames"] == ["n1"]
    assert len(cycles) == 2, "nothing is sent again"


class HoldingBinder(Odd):
    """A binder that answers every bind at once but that of the pod "held".

    Attributes:
        ended: How many streams have ended.
        released: Whether "held" is answered too.
    """

    def __init__(self) -> None:
        super().__init__("silent")
        self.ended = 0
        self.released = asyncio.Event()

    async def Barrier(self, request: Any, context: Any) -> Any:
        del context
        return pb.BinderServiceBarrierResponse(epoch=request.epoch, holder=request.holder)

    async def Session(  # type: ignore[override]  # grpc takes either form
        self, request_iterator: AsyncIterator[Any], context: Any
    ) -> None:
        names: list[str] = []
        self.streams.append(names)
        await context.send_initial_metadata(())
        try:
            async with asyncio.TaskGroup() as group:
                async for request in request_iterator:
                    names.append(request.bind.name)
                    group.create_task(self._answer(request, context))
        finally:
            self.ended += 1

    async def _answer(self, request: Any, context: Any) -> None:
        if request.bind.name == "held":
            await self.released.wait()
        await context.write(pb.BinderServiceSessionResponse(id=request.id))


@asynccontextmanager
async def holding_binder(folder: Path) -> AsyncIterator[tuple[HoldingBinder, str]]:
    server, servicer = grpc.aio.server(), HoldingBinder()
    binder_pb2_grpc.add_BinderServiceServicer_to_server(servicer, server)
    port = server.add_secure_port("127.0.0.1:0", ServerCredentials(Certificates(folder)).grpc)
    await server.start()
    try:
        yield servicer, f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def begin(process: Gateway, name: str) -> asyncio.Task[str]:
    obj = process.api.pod(name, schedulerName="moorage")
    return asyncio.create_task(bind(process, obj))


async def test_a_connection_that_is_replaced_answers_its_bind(tmp_path: Path) -> None:
    services, ours = renew(tmp_path / "services"), renew(tmp_path / "ours")
    async with (
        holding_binder(services) as (binder, address),
        gateway(
            tmp_path, binder=address, config=None, tls=ours, tls_reload_interval=0.01
        ) as process,
    ):
        await process.node("n1")
        held = begin(process, "held")
        await until(lambda: binder.streams == [["held"]])
        renew(ours)
        number = 0
        while len(binder.streams) == 1:  # the new connection takes over while binds go on
            number += 1
            assert await begin(process, f"p{number}") == ""
        assert not held.done()
        assert binder.ended == 0
        binder.released.set()
        assert await held == ""
        await until(lambda: binder.ended == 1)
    first, second = binder.streams
    assert (first.count("held"), second.count("held")) == (1, 0)
