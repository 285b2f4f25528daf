"""Services: which pods are behind them, what their names and their addresses lead to.

The DNS of the cluster has A records of Services, as CoreDNS answers for them.
"""

import asyncio
import random
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tests.e2e.renderings.node.network import DNS, KUBERNETES, Network
from tools.planes.embedded import Object

ZONE = "cluster.local"
A, AAAA, IN = 1, 28, 1
NO_ERROR, NO_SUCH_NAME = 0, 3
TTL = 5
HEADER = struct.Struct("!6H")
QUESTION = struct.Struct("!HH")

Records = Callable[[str], Sequence[str] | None]
"""The addresses of a name, None if there is no such name."""


class Names(asyncio.DatagramProtocol):
    """Answers over UDP."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._transport: asyncio.DatagramTransport | None = None

    async def start(self, bound: socket.socket) -> None:
        """Answer what comes to a socket until `stop`."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=bound)

    def stop(self) -> None:
        """Listen no more."""
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer a question."""
        assert self._transport is not None
        self._transport.sendto(answer(data, self._records), addr)


def answer(request: bytes, records: Records) -> bytes:
    """Return the response to a request with one question."""
    number, _, _, _, _, _ = HEADER.unpack_from(request)
    labels, at = [], HEADER.size
    while length := request[at]:
        labels.append(request[at + 1 : at + 1 + length].decode().lower())
        at += 1 + length
    kind, _ = QUESTION.unpack_from(request, at + 1)
    question = request[HEADER.size : at + 1 + QUESTION.size]
    found = records(".".join(labels))
    addresses = found if found and kind == A else ()
    code = NO_SUCH_NAME if found is None else NO_ERROR
    # A response, authoritative, recursion available.
    header = HEADER.pack(number, 0x8580 | code, 1, len(addresses), 0, 0)
    pointer = struct.pack("!HHHIH", 0xC000 | HEADER.size, A, IN, TTL, 4)
    return header + question + b"".join(pointer + socket.inet_aton(each) for each in addresses)


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
