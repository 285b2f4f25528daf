"""Services: which pods are behind them, what their names mean, and what their addresses lead to."""

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from tests.e2e.renderings.node.names import ZONE, Names
from tests.e2e.renderings.node.network import DNS, KUBERNETES, Network
from tools.planes.embedded import Object

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connects = Callable[[], Awaitable[Connection]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A pod, as Services see it."""

    namespace: str
    labels: dict[str, str]
    ports: dict[str, int]
    address: str
    ready: bool


class Services:
    """Stands in for CoreDNS and kube-proxy."""

    def __init__(self, network: Network, endpoints: Callable[[], Iterable[Endpoint]]) -> None:
        self._network = network
        self._endpoints = endpoints
        self._services: dict[str, Object] = {}
        self._listening: list[asyncio.Server] = []
        self._names = Names(self._addresses)

    async def start(self, api_port: int) -> None:
        """Answer for names, and for the API server's Service."""
        self._network.give(DNS)
        self._network.give(KUBERNETES)
        bound = self._network.node.open(socket.SOCK_DGRAM)
        bound.bind((DNS, 53))
        await self._names.start(bound)
        await self._listen(KUBERNETES, 443, lambda: self._outside(api_port))

    async def add(self, service: Object) -> None:
        """Answer for a Service, as the API server has it."""
        metadata, spec = service["metadata"], service["spec"]
        self._services[f"{metadata['name']}.{metadata['namespace']}.svc.{ZONE}"] = service
        if spec["clusterIP"] == "None":
            return
        self._network.give(spec["clusterIP"])
        for port in spec["ports"]:
            behind = self._behind(service, port["targetPort"])
            await self._listen(spec["clusterIP"], port["port"], self._inside(behind))

    async def stop(self) -> None:
        """Answer no more."""
        self._names.stop()
        for server in self._listening:
            server.close()

    def _addresses(self, name: str) -> list[str] | None:
        service = self._services.get(name)
        if service is None:
            return None
        address = service["spec"]["clusterIP"]
        return [address] if address != "None" else [e.address for e in self._ready(service)]

    def _ready(self, service: Object) -> list[Endpoint]:
        spec = service["spec"]
        return [
            each
            for each in self._endpoints()
            if each.namespace == service["metadata"]["namespace"]
            and spec["selector"].items() <= each.labels.items()
            and (each.ready or spec.get("publishNotReadyAddresses"))
        ]

    def _behind(self, service: Object, port: int | str) -> Callable[[], list[tuple[str, int]]]:
        return lambda: [
            (each.address, each.ports[port] if isinstance(port, str) else port)
            for each in self._ready(service)
        ]

    async def _outside(self, port: int) -> Connection:
        return await asyncio.open_connection("127.0.0.1", port)

    def _inside(self, behind: Callable[[], list[tuple[str, int]]]) -> Connects:
        async def connect() -> Connection:
            target = random.choice(behind())
            made = self._network.node.open()
            try:
                await asyncio.get_running_loop().sock_connect(made, target)
            except BaseException:
                made.close()
                raise
            return await asyncio.open_connection(sock=made)

        return connect

    async def _listen(self, address: str, port: int, connect: Connects) -> None:
        async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, IndexError):  # nobody is behind it: the connection is closed
                there, back = await connect()
                await asyncio.gather(_copy(reader, back), _copy(there, writer))
            writer.close()

        bound = self._network.node.open()
        bound.bind((address, port))
        self._listening.append(await asyncio.start_server(forward, sock=bound))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while content := await reader.read(1 << 16):
            writer.write(content)
            await writer.drain()
    writer.close()
