"""Listens for kube-scheduler. Called by the gateway's main and by tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from gateway.edge.edge import Edge
from moorage.errors import ConfigurationError
from moorage_host.http.connections import HEAD_LIMITS, Connections
from moorage_host.process.admin import address, cause_of
from moorage_host.tls.security import LOOPBACK, Security, server_context

_POLL_SECONDS = 0.05
_BACKLOG = 1024  # connections that may wait to be accepted: every bind of a burst opens one
_READ_BUFFER = 1 << 20  # bytes; with aiohttp's own, reading stops and restarts every 128 kB


@asynccontextmanager
async def run_edge(
    edge: Edge, host: str, port: int, security: Security = LOOPBACK
) -> AsyncIterator[int]:
    """Listen while the block runs; give the port, of which 0 takes a free one.

    When the block ends no connection is accepted any more. Open ones are served until their callers
    leave or `http_drain_time` is over, then calls in progress and binds are waited for.

    Raises:
        ConfigurationError: The port is taken, or the address can be reached from elsewhere, and
            plain text is not allowed there.
    """
    settings = edge.settings
    security.require(f"listen on {host}:{port} for kube-scheduler", host)
    certificates = security.certificates
    context = server_context(certificates, "required") if certificates is not None else None
    connections = Connections(
        edge.refusals,
        context,
        most=settings.http_connections,
        head_time=settings.http_head_time,
    )
    server = web.Server(
        edge.handle,
        access_log=None,
        logger=edge.refusals.logger(),
        handler_cancellation=True,
        keepalive_timeout=settings.http_keep_alive,
        auto_decompress=False,
        read_bufsize=_READ_BUFFER,
        **HEAD_LIMITS,
    )
    listening = connections.listening(server, host, port, backlog=_BACKLOG)
    async with AsyncExitStack() as stack:
        try:
            listener = await stack.enter_async_context(listening)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {address(host, port)} for kube-scheduler: {cause_of(error)}; "
                "choose another --extender-port or --extender-host"
            ) from error
        try:
            yield listener.sockets[0].getsockname()[1]
        finally:
            edge.draining = True
            listener.close()
            await _until_unused(server, settings.http_drain_time)
            server.pre_shutdown()
            # aiohttp waits so long twice: before it stops reading a request's body, and after.
            await server.shutdown(settings.shutdown_grace / 2)
            await edge.until_bound(settings.shutdown_grace)


async def _until_unused(server: web.Server, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    # aiohttp has no event for the end of a connection.
    while server.connections and loop.time() < end:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS)
