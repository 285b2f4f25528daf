"""Connects to a port of a pod through the API server, as `kubectl port-forward` does.

Each connection is a WebSocket of the protocol v4.channel.k8s.io, which the API server passes on to
the pod's kubelet. The first byte of a message is its channel: 0 for data, 1 for what went wrong.
The first two bytes on each channel are the number of the port.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from cli.shared.gateway.errors import GatewayError
from cli.shared.gateway.finding import SECONDS, GatewayPod
from moorage_host.kube import KubeClient, KubeError, KubeStatusError

PROTOCOL = "v4.channel.k8s.io"

DATA, ERROR = 0, 1

PORT_BYTES = 2

CHUNK = 1 << 16


class ForwardedConnector(aiohttp.BaseConnector):
    """Makes the connections of an HTTP client to a pod; nothing on this machine listens.

    Attributes:
        pod: Where connections lead.
        problem: What the kubelet last reported, "" if nothing.
    """

    def __init__(
        self, client: KubeClient, pod: GatewayPod, context: ssl.SSLContext | None, identity: str
    ) -> None:
        """Speak TLS inside with *context*, to a server that proves to be *identity*."""
        super().__init__(limit=4)
        self._client = client
        self.pod = pod
        self._tls: dict[str, Any] = {"ssl": context, "server_hostname": identity} if context else {}
        self._pumps: set[asyncio.Task[None]] = set()
        self.problem = ""

    async def _create_connection(
        self, req: Any, traces: Any, timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        """Return a new connection; aiohttp calls it when it has none that is idle."""
        tunnel = await self._open()
        near, far = socket.socketpair()
        pump = asyncio.create_task(self._pump(tunnel, far))
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        try:
            _, protocol = await self._loop.create_connection(self._factory, sock=near, **self._tls)
        except BaseException:
            near.close()
            pump.cancel()
            raise
        return protocol

    async def close_forwarding(self) -> None:
        """End all connections."""
        await self.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

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

    async def _pump(self, tunnel: aiohttp.ClientWebSocketResponse, end: socket.socket) -> None:
        """Carry bytes until one side ends."""
        reader, writer = await asyncio.open_connection(sock=end)
        try:
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
        finally:
            writer.close()
            await tunnel.close()
            with suppress(OSError):
                await writer.wait_closed()

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


async def _to_pod(reader: asyncio.StreamReader, tunnel: aiohttp.ClientWebSocketResponse) -> None:
    while content := await reader.read(CHUNK):
        await tunnel.send_bytes(bytes([DATA]) + content)
