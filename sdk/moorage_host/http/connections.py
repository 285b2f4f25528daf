"""The connections of an HTTP port, within limits; aiohttp answers what comes over them.

A connection may be idle for as long as aiohttp's keep-alive lets it, but a request that has begun
must show its head in time. When there are too many connections, one that waits for its caller is
closed for the new one. It is one of the caller with most connections, so that nobody can keep
others out.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar, cast

from aiohttp import web

from moorage_host.http.refusals import Refusals

RequestT = TypeVar("RequestT", bound=web.BaseRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the callers of a port may take.

    Attributes:
        connections: Connections open at once.
        head_time: Seconds from the first byte of a request to the end of its head.
        headers: Headers of a request.
        header_bytes: Bytes of one header, or of the request's line.
    """

    connections: int
    head_time: float
    headers: int
    header_bytes: int

    def of_heads(self) -> dict[str, Any]:
        """Return aiohttp's options for heads."""
        size = self.header_bytes
        return {"max_line_size": size, "max_field_size": size, "max_headers": self.headers}


class State(IntEnum):
    """What a connection does; the first is closed first."""

    HEAD = 0
    SILENT = 1
    IDLE = 2
    BUSY = 3


class Connections:
    """Those that are open on one port."""

    def __init__(self, limits: Limits, refusals: Refusals) -> None:
        self.limits = limits
        self._refusals = refusals
        self._open: set[Connection] = set()

    @asynccontextmanager
    async def listening(
        self, server: web.Server, host: str, port: int, *, backlog: int = 128
    ) -> AsyncIterator[asyncio.Server]:
        """Accept connections for *server*; whoever closes the listener ends that earlier.

        Raises:
            OSError: The address cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(
            lambda: Connection(self, server()), host, port, backlog=backlog
        )
        watching = loop.create_task(self._close_slow_heads())
        try:
            yield listener
        finally:
            listener.close()
            watching.cancel()

    def busy(
        self, handler: Callable[[RequestT], Awaitable[web.StreamResponse]]
    ) -> Callable[[RequestT], Awaitable[web.StreamResponse]]:
        """Return a handler that notes which connections have a request."""

        async def handle(request: RequestT) -> web.StreamResponse:
            transport = request.transport
            connection = transport.get_protocol() if transport is not None else None
            if not isinstance(connection, Connection):
                return await handler(request)
            connection.become(State.BUSY)
            try:
                return await handler(request)
            finally:
                connection.become(State.IDLE)

        return handle

    def add(self, connection: "Connection") -> None:
        """Take a new connection; if there are too many, close another one or this one."""
        self._open.add(connection)
        if len(self._open) <= self.limits.connections:
            return
        victim = self._victim(connection)
        self._refusals.note(
            "connections",
            f"more than {self.limits.connections} connections; one of {victim.peer} is closed",
        )
        victim.abort()

    def remove(self, connection: "Connection") -> None:
        """Forget a connection that is closed."""
        self._open.discard(connection)

    def _victim(self, new: "Connection") -> "Connection":
        counts = Counter(each.peer for each in self._open)
        peer = max(counts, key=lambda each: (counts[each], each == new.peer))
        theirs = [each for each in self._open if each.peer == peer and each is not new]
        found = min(theirs, key=lambda each: (each.state, each.since), default=new)
        # A busy one is closed only for a caller that has fewer.
        return new if found.state is State.BUSY and peer == new.peer else found

    async def _close_slow_heads(self) -> None:
        limit = self.limits.head_time
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(1.0, limit / 4))
            latest = loop.time() - limit
            slow = [c for c in self._open if c.state is State.HEAD and c.since < latest]
            for connection in slow:
                self._refusals.note(
                    "head_time", f"{connection.peer} did not send a whole head in {limit:g} s"
                )
                connection.abort()


class Connection(asyncio.Protocol):
    """One connection: hands over to aiohttp what comes, and knows how long it takes."""

    def __init__(self, connections: Connections, handler: web.RequestHandler) -> None:
        self.peer = ""
        self.state = State.SILENT
        self.since = 0.0
        self._connections = connections
        self._handler = handler
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()

    def become(self, state: State) -> None:
        """Change the state."""
        self.state = state
        self.since = self._loop.time()

    def abort(self) -> None:
        """Close it at once."""
        self._connections.remove(self)
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there are too many."""
        self._transport = cast("asyncio.Transport", transport)
        self.peer = str((transport.get_extra_info("peername") or ("",))[0])
        self.become(State.SILENT)
        self._handler.connection_made(transport)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Hand it over."""
        if self.state is State.SILENT or self.state is State.IDLE:
            self.become(State.HEAD)
        self._handler.data_received(data)

    def eof_received(self) -> None:
        """Hand it over."""
        self._handler.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._connections.remove(self)
        self._handler.connection_lost(exc)

    def pause_writing(self) -> None:
        """Hand it over."""
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        """Hand it over."""
        self._handler.resume_writing()
