"""Listens. Called by the gateway's main and by tests."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from gateway.edge.app import App
from gateway.edge.connection import Connection

_LOOK_AGAIN = 0.05  # seconds
_READ_AHEAD = 1 << 20  # bytes; aiohttp stops and restarts reading every 128 kB otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An edge that is listening."""

    port: int


@asynccontextmanager
async def run_edge(app: App, host: str, port: int) -> AsyncIterator[Edge]:
    """Listen while the block runs; port 0 takes a free one.

    When the block ends no connection is accepted any more, open ones are served until their callers
    leave or `http_drain_time` is over, and calls in progress and binds are waited for.

    Raises:
        OSError: The port is taken.
    """
    settings, connections = app.settings, app.connections
    others = web.Server(
        app.handle,
        access_log=None,
        handler_cancellation=True,
        keepalive_timeout=settings.http_keep_alive,
        auto_decompress=False,
        read_bufsize=_READ_AHEAD,
    )
    listener = await asyncio.get_running_loop().create_server(
        lambda: Connection(connections, others), host, port, backlog=settings.http_backlog
    )
    try:
        yield Edge(port=listener.sockets[0].getsockname()[1])
    finally:
        connections.draining = True
        listener.close()
        await _drain(lambda: bool(connections or others.connections), settings.http_drain_time)
        others.pre_shutdown()
        grace = settings.shutdown_grace
        await asyncio.gather(connections.finish(grace), others.shutdown(grace))
        await app.finish()


async def _drain(is_busy: Callable[[], bool], seconds: float) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    # aiohttp tells nobody when a connection ends.
    while is_busy() and loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_AGAIN)
