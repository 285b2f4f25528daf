"""As much of a kubelet as `port-forward` needs: what listens on this machine is a pod's."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
from aiohttp import web

from tools.planes.real import Authority

HOST = "127.0.0.1"
PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = b"\0", b"\1"


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[str, int], Awaitable[Streams]]
"""Connects to a port of the pod with this name."""

CONNECT: web.AppKey[Connect] = web.AppKey("connect")


async def on_this_machine(pod: str, port: int) -> Streams:
    """Connect to a port on loopback, whichever the pod."""
    del pod
    return await asyncio.open_connection(HOST, port)


@asynccontextmanager
async def kubelet(directory: Path, connect: Connect = on_this_machine) -> AsyncIterator[int]:
    """Serve over HTTPS until the block is left, with a key in *directory*; give the port."""
    own = Authority(directory, "kubelet").sign("serving", "kubelet")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own.crt, own.key)
    app = web.Application()
    app[CONNECT] = connect
    app.router.add_get("/portForward/{namespace}/{pod}", forward)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, 0, ssl_context=context)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def forward(request: web.Request) -> web.StreamResponse:
    """Forward a WebSocket to the port of a pod that is asked for, as a kubelet does."""
    port = int(request.query.get("port") or request.query["ports"])
    tunnel = web.WebSocketResponse(protocols=(PROTOCOL,))
    await tunnel.prepare(request)
    number = struct.pack("<H", port)
    await tunnel.send_bytes(DATA + number)
    await tunnel.send_bytes(ERROR + number)
    try:
        connect = request.app.get(CONNECT, on_this_machine)
        reader, writer = await connect(request.match_info["pod"], port)
    except OSError:
        await tunnel.send_bytes(ERROR + b"dial tcp4 127.0.0.1: connect: connection refused")
        await tunnel.close()
        return tunnel
    back = asyncio.create_task(_from_port(reader, tunnel))
    try:
        async for message in tunnel:
            if message.type == aiohttp.WSMsgType.BINARY and message.data[:1] == DATA:
                writer.write(message.data[1:])
                await writer.drain()
    finally:
        back.cancel()
        await asyncio.wait([back])
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return tunnel


async def _from_port(reader: asyncio.StreamReader, tunnel: web.WebSocketResponse) -> None:
    while content := await reader.read(1 << 16):
        await tunnel.send_bytes(DATA + content)
    await tunnel.close()
