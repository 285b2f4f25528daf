"""Listens for kube-scheduler. Called by the gateway's main and by tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from gateway.edge.app import App

_POLL_SECONDS = 0.05
_READ_BUFFER = 1 << 20  # bytes; with aiohttp's own, reading stops and restarts every 128 kB


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An edge that is listening."""

    port: int


@asynccontextmanager
async def run_edge(app: App, host: str, port: int) -> AsyncIterator[Edge]:
    """Listen while the block runs; port 0 takes a free one.

    When the block ends no connection is accepted any more. Open ones are served until their callers
    leave or `http_drain_time` is over, then calls in progress and binds are waited for.

    Raises:
        OSError: The port is taken.
    """
    settings = app.settings
    server = web.Server(
        app.handle,
        access_log=None,
        handler_cancellation=True,
        keepalive_timeout=settings.http_keep_alive,
        auto_decompress=False,
        read_bufsize=_READ_BUFFER,
    )

    def connection() -> asyncio.Protocol:
        if len(server.connections) < settings.http_connections:
            return server()
        app.refuse_connection()
        return _Refusal()

    listener = await asyncio.get_running_loop().create_server(
        connection, host, port, backlog=settings.http_backlog
    )
    try:
        yield Edge(port=listener.sockets[0].getsockname()[1])
    finally:
        app.draining = True
        listener.close()
        await _until_unused(server, settings.http_drain_time)
        server.pre_shutdown()
        # aiohttp waits so long twice: before it stops reading a request's body, and after that.
        await server.shutdown(settings.shutdown_grace / 2)
        await app.finish(settings.shutdown_grace)


class _Refusal(asyncio.Protocol):
    """Closes a connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        transport.close()


async def _until_unused(server: web.Server, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    # aiohttp has no event for the end of a connection.
    while server.connections and loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS)
