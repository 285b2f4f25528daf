"""Forwards a port of this machine to a pod through the API server, as `kubectl port-forward` does.

Each connection is a WebSocket of the protocol v4.channel.k8s.io, which the API server passes on to
the pod's kubelet. The first byte of a message is its channel: 0 for data, 1 for what went wrong.
The first two bytes on each channel are the number of the port.

By hand, since a library does not do it: kubernetes_asyncio has no port-forward, and kubectl is not
on every machine, such as one in a pod that has only this command.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from cli.shared.gateway.finding import SECONDS, GatewayError
from cli.shared.gateway.pods import AdminPort
from moorage_host.kube import KubeClient, KubeError, KubeStatusError

LOOPBACK = "127.0.0.1"

PROTOCOL = "v4.channel.k8s.io"

DATA, ERROR = 0, 1

PORT_BYTES = 2

CHUNK = 1 << 16


class Forwarding:
    """The way from a port on loopback to a pod.

    Attributes:
        pod: Where connections lead.
        port: The port on loopback, while `forwarded` is open.
        refused: Why the API server opens no connection to the pod; None if it does.
        problem: What the kubelet last reported, "" if nothing.
    """

    def __init__(self, client: KubeClient, pod: AdminPort) -> None:
        self._client = client
        self.pod = pod
        self.port = 0
        self.refused: GatewayError | None = None
        self.problem = ""

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry the bytes of one connection until one side ends."""
        try:
            tunnel = await self._open()
        except GatewayError as error:
            self.refused = error
            writer.close()
            return
        self.refused = None
        ways = [
            asyncio.create_task(_to_pod(reader, tunnel)),
            asyncio.create_task(self._from_pod(tunnel, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            await tunnel.close()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _open(self) -> aiohttp.ClientWebSocketResponse:
        path = f"/api/v1/namespaces/{self.pod.namespace}/pods/{self.pod.name}/portforward"
        query = {"ports": str(self.pod.port)}
        try:
            return await self._client.open_websocket(
                path, query=query, protocol=PROTOCOL, timeout=SECONDS
            )
        except KubeStatusError as error:
            right = ": you need the rights get and create on pods/portforward there"
            raise GatewayError(
                f"cannot forward a port to pod {self.pod}: {error.message or error}"
                f"{right if error.status in (401, 403) else ''}"
            ) from error
        except (KubeError, TimeoutError) as error:
            raise GatewayError(f"cannot forward a port to pod {self.pod}: {error}") from error

    async def _from_pod(
        self, tunnel: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter
    ) -> None:
        skipped = {DATA: PORT_BYTES, ERROR: PORT_BYTES}
        async for message in tunnel:
            if message.type != aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, content = message.data[0], message.data[1:]
            skip = min(skipped.get(channel, 0), len(content))
            skipped[channel] = skipped.get(channel, 0) - skip
            content = content[skip:]
            if channel == DATA:
                writer.write(content)
                await writer.drain()
            elif content:
                self.problem = content.decode(errors="replace").strip()


@asynccontextmanager
async def forwarded(client: KubeClient, pod: AdminPort) -> AsyncIterator[Forwarding]:
    """Forward a free port on loopback to the admin port of a pod until the block is left."""
    way = Forwarding(client, pod)
    carried: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(way.carry(reader, writer))
        carried.add(task)
        task.add_done_callback(carried.discard)

    server = await asyncio.start_server(accept, LOOPBACK, 0)
    way.port = server.sockets[0].getsockname()[1]
    try:
        yield way
    finally:
        server.close()
        for task in carried:
            task.cancel()
        await asyncio.gather(*carried, return_exceptions=True)


async def _to_pod(reader: asyncio.StreamReader, tunnel: aiohttp.ClientWebSocketResponse) -> None:
    while content := await reader.read(CHUNK):
        await tunnel.send_bytes(bytes([DATA]) + content)
