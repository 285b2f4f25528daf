"""Connections of kube-scheduler: its calls are read and answered here, all others by aiohttp.

Go's client writes every call alike. To read no more than that, and to begin once the body is there,
takes a fraction of what aiohttp needs for a request, which was a tenth of the gateway's work.
"""

import asyncio
import re
from collections.abc import Callable
from typing import cast

from aiohttp.tcp_helpers import tcp_keepalive

from gateway.edge.reply import CLOSE
from gateway.edge.routes import Place, Places

SLOW_SECONDS = 0.1
"""After which a body that has not come is waited for within the call's own deadline."""

_HEADER = rb"(?:Host|User-Agent|Content-Type|Accept|Accept-Encoding): [ -~]*\r\n"
_PLAIN = re.compile(
    rb"POST (/[!-~]*) HTTP/1\.1\r\n(?:%b)*Content-Length: ([0-9]{1,12})\r\n(?:%b)*\r\n"
    % (_HEADER, _HEADER)
)


class Connections:
    """Connections that are open and answered here.

    Attributes:
        draining: Whether each is to end after its next answer.
    """

    def __init__(self, places: Places, keep_alive: float) -> None:
        """Close connections that are idle for *keep_alive* seconds."""
        self.places = places
        self.keep_alive = keep_alive
        self.draining = False
        self._open: set[Connection] = set()
        self.add = self._open.add
        self.remove = self._open.discard

    def __len__(self) -> int:
        return len(self._open)

    async def finish(self, seconds: float) -> None:
        """Close all, after at most *seconds* those that are being answered."""
        tasks = [task for each in [*self._open] if (task := each.finish()) is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for each in [*self._open]:
            each.abort()


class Connection(asyncio.Protocol):
    """One connection. It is aiohttp's from the first call on that is not as Go writes them."""

    _transport: asyncio.Transport
    _idle: asyncio.TimerHandle

    def __init__(self, connections: Connections, other: Callable[[], asyncio.Protocol]) -> None:
        self._connections = connections
        self._other = other
        self._loop = asyncio.get_running_loop()
        self._idle_since = self._loop.time()
        self._call: _Call | None = None  # until its body is there
        self._slow: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None  # answers a call
        self._next = b""  # what came meanwhile

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first call."""
        self._transport = cast("asyncio.Transport", transport)
        tcp_keepalive(self._transport)
        self._connections.add(self)
        self._look_at_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what is read or answered."""
        del exc
        self._forget()
        if self._task is not None:
            self._task.cancel()
        elif self._call is not None:
            self._call.place.exchange.hung_up(self._loop.time() - self._call.arrival)

    def data_received(self, data: bytes) -> None:
        """Take a piece of a call."""
        if self._call is not None:
            self._read(self._call, data)
        elif self._task is None:
            self._begin(data)
        else:
            self._next += data
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        """Take nothing more from a caller that does not read."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Go on."""
        self._transport.resume_reading()

    def finish(self) -> "asyncio.Task[None] | None":
        """Close the connection if it is idle; otherwise return what answers a call."""
        if self._task is None:
            self._transport.close()
        return self._task

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def _forget(self) -> None:
        self._connections.remove(self)
        self._idle.cancel()
        if self._slow is not None:
            self._slow.cancel()

    def _look_at_idle(self) -> None:
        left = self._connections.keep_alive
        if self._task is None and self._call is None:
            left -= self._loop.time() - self._idle_since
        if left > 0:
            self._idle = self._loop.call_later(left, self._look_at_idle)
        else:
            self._transport.close()

    def _begin(self, data: bytes) -> None:
        head = _PLAIN.match(data)
        place = self._connections.places.exact(head[1].decode()) if head else None
        if head is None or place is None or int(head[2]) > place.exchange.limit:
            self._hand_over(data)
            return
        self._call = _Call(place, self._loop.time(), int(head[2]))
        self._read(self._call, data[head.end() :])
        if self._call is not None:
            self._slow = self._loop.call_later(SLOW_SECONDS, self._wait, self._call)

    def _hand_over(self, data: bytes) -> None:
        self._forget()
        other = self._other()
        self._transport.set_protocol(other)
        other.connection_made(self._transport)
        other.data_received(data)

    def _read(self, call: "_Call", data: bytes) -> None:
        if len(data) > call.missing:
            data, self._next = data[: call.missing], data[call.missing :]
            self._transport.pause_reading()
        call.pieces.append(data)
        call.missing -= len(data)
        if call.missing:
            return
        self._call = None
        if self._slow is not None:
            self._slow.cancel()
        body = data if len(call.pieces) == 1 else b"".join(call.pieces)
        if call.body is None:
            self._task = self._loop.create_task(self._answer(call, body))
        elif not call.body.done():  # given up a moment ago
            call.body.set_result(body)

    def _wait(self, call: "_Call") -> None:
        call.body = self._loop.create_future()
        self._task = self._loop.create_task(self._answer(call, call.body))

    async def _answer(self, call: "_Call", body: bytes | asyncio.Future[bytes]) -> None:
        reply = await call.place.exchange.answer(body, call.place.plugin, call.arrival)
        self._task, self._idle_since = None, self._loop.time()
        if self._connections.draining or self._call is not None:  # its body is still on the way
            reply.send(self._transport, CLOSE)
            self._transport.close()
        else:
            reply.send(self._transport)
            if self._next:
                data, self._next = self._next, b""
                self._transport.resume_reading()
                self._begin(data)


class _Call:
    """A call whose body may not be there yet."""

    __slots__ = ("arrival", "body", "missing", "pieces", "place")

    def __init__(self, place: Place, arrival: float, missing: int) -> None:
        self.place = place
        self.arrival = arrival
        self.missing = missing  # bytes
        self.pieces: list[bytes] = []
        self.body: asyncio.Future[bytes] | None = None  # if somebody waits for it
