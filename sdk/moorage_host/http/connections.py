"""The connections of an HTTP port, within limits; aiohttp answers what comes over them.

A connection may be idle for as long as aiohttp's keep-alive lets it, but a request that has begun
must show its head in time. When there are too many connections, one that waits for its caller is
closed for the new one. It is one of the caller with most connections, so that nobody can keep
others out.
"""

import asyncio
import os
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from enum import IntEnum
from functools import partial
from typing import Any, cast

from aiohttp import web

from moorage_host.http.requests import Refusals
from moorage_host.tls.identities import http_identities

HEAD_LIMITS: dict[str, Any] = {"max_line_size": 8190, "max_field_size": 8190, "max_headers": 32}
"""aiohttp's options for heads: bytes of the first line and of one header, and how many there are.

The head of each connection thus takes up to 32 times 8 kB.
"""


class State(IntEnum):
    """What a connection does; the first is closed first."""

    HANDSHAKE = 0
    HEAD = 1
    SILENT = 2
    IDLE = 3
    BUSY = 4


class Connections:
    """Those that are open on one port.

    Args:
        refusals: Counts what is closed.
        context: Secures them; None is plain text.
        most: Connections open at once.
        head_time: Seconds from the first byte of a request to the end of its head.
    """

    def __init__(
        self, refusals: Refusals, context: ssl.SSLContext | None, *, most: int, head_time: float
    ) -> None:
        self._most = most
        self._head_time = head_time
        self.context = context
        self._refusals = refusals
        self._open: set[Connection] = set()
        self._handshakes: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(
        self, server: web.Server, host: str, port: int, *, backlog: int = 128
    ) -> AsyncIterator[asyncio.Server]:
        """Accept connections for *server*; whoever closes the listener ends that earlier.

        Raises:
            OSError: The address cannot be listened on.
        """
        loop = asyncio.get_running_loop()

        def accepted() -> asyncio.Protocol:
            connection = Connection(self, server())
            return (
                connection if self.context is None else _Handover(partial(self._secure, connection))
            )

        listener = await loop.create_server(accepted, host, port, backlog=backlog)
        watching = loop.create_task(self._close_slow_heads())
        try:
            yield listener
        finally:
            listener.close()
            for task in (watching, *self._handshakes):
                task.cancel()

    def add(self, connection: "Connection") -> None:
        """Take a new connection; if there are too many, close another one or this one."""
        self._open.add(connection)
        if len(self._open) <= self._most:
            return
        victim = self._victim(connection)
        self._refusals.note(
            "connections",
            f"more than {self._most} connections; one of {victim.peer} is closed",
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

    def _secure(self, connection: "Connection", sock: socket.socket) -> None:
        try:
            connection.peer = sock.getpeername()[0]
        except OSError:  # it is gone already
            sock.close()
            return
        connection.become(State.HANDSHAKE)
        task = asyncio.create_task(self._shake_hands(connection, sock))
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)
        connection.give_up = task.cancel
        self.add(connection)

    async def _shake_hands(self, connection: "Connection", sock: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                sock,
                ssl=self.context,
                # Whoever takes longer than for a head is found with those.
                ssl_handshake_timeout=2 * self._head_time,
            )
        except (OSError, TimeoutError) as error:
            self.remove(connection)
            self._refusals.note("handshake", f"TLS with {connection.peer} failed: {error}")
        finally:
            connection.give_up = _do_nothing

    async def _close_slow_heads(self) -> None:
        limit = self._head_time
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(1.0, limit / 4))
            latest = loop.time() - limit
            slow = [c for c in self._open if c.state <= State.HEAD and c.since < latest]
            for connection in slow:
                self._refusals.note(
                    "head_time", f"{connection.peer} did not send a whole head in {limit:g} s"
                )
                connection.abort()


class Connection(asyncio.Protocol):
    """One connection: hands over to aiohttp what comes, and knows how long it takes.

    Attributes:
        identities: DNS names in the caller's certificate; None in plain text.
        certificate: The certificate, as `ssl` gives it; empty without one.
        caller: Who calls, for people: the address, and these names if there are.
        give_up: Ends the handshake, if there is one.
    """

    def __init__(self, connections: Connections, handler: web.RequestHandler) -> None:
        self.peer = ""
        self.state = State.SILENT
        self.since = 0.0
        self._connections = connections
        self._handler = handler
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self.identities: frozenset[str] | None = None
        self.certificate: Mapping[str, Any] = {}
        self.caller = ""
        self.give_up: Callable[[], object] = _do_nothing

    def become(self, state: State) -> None:
        """Change the state."""
        self.state = state
        self.since = self._loop.time()

    def abort(self) -> None:
        """Close it at once."""
        self._connections.remove(self)
        self.give_up()
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to hand over, unless there are too many; with TLS, after the handshake."""
        self._transport = cast("asyncio.Transport", transport)
        self.peer = self.peer or str((transport.get_extra_info("peername") or ("",))[0])
        self.become(State.SILENT)
        if transport.get_extra_info("sslcontext") is not None:
            self.certificate = transport.get_extra_info("peercert") or {}
            self.identities = http_identities(self.certificate)
        names = ", ".join(sorted(self.identities or ()))
        self.caller = f"{names} at {self.peer}" if names else self.peer or "unknown"
        self._handler.connection_made(transport)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Hand it over."""
        if self.state is State.SILENT or self.state is State.IDLE:
            self.state, self.since = State.HEAD, self._loop.time()
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


class _Handover(asyncio.Protocol):
    """A connection before TLS: hands its socket over, of which nothing has been read."""

    def __init__(self, secure: Callable[[socket.socket], None]) -> None:
        self._secure = secure

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand over."""
        own = transport.get_extra_info("socket").fileno()
        sock = socket.socket(fileno=os.dup(own))
        cast("asyncio.Transport", transport).abort()
        self._secure(sock)


def connection_of(request: web.BaseRequest) -> Connection | None:
    """Return the connection of a request; None once it is closed."""
    transport = request.transport
    protocol = transport.get_protocol() if transport is not None else None
    return protocol if isinstance(protocol, Connection) else None


def _do_nothing() -> None:
    """Stand for the end of a handshake that is over."""
