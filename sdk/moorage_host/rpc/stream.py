"""The calling side of a stream of numbered requests: many at a time, answered in any order.

One task writes and one reads for as long as the stream is open, so a request costs a future and no
task. One timer serves the deadlines of all requests.
"""

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import grpc.aio

from moorage_host.rpc.errors import ending_of

T = TypeVar("T")

Message = bytes | Callable[[], bytes]
"""An encoded message, or what encodes it when its turn comes; empty bytes are not sent."""

TIMER_RESOLUTION = 0.001
"""Seconds by which the event loop may call a timer too early."""

_ENDINGS = (grpc.aio.AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError)
"""What gRPC raises when a stream has ended."""


class StreamLostError(Exception):
    """The stream broke; what has no answer may be sent again, here or elsewhere."""


class MessageStream(Generic[T]):
    """An open stream, or one that waits for a server.

    Nothing is written before the server has sent its headers: gRPC would keep it, and send it to
    whichever server comes at last.

    Attributes:
        last_heard: When the server last sent something, or was connected to, in `loop.time()`;
            infinite before that.
        opened: When the headers of the server came, in `loop.time()`; infinite before that.
        lost: Why the stream is over; None while it is open.
        outbox: The messages that wait to be written.
    """

    def __init__(
        self, call: "grpc.aio.StreamStreamCall[bytes, T]", receive: Callable[[T], None]
    ) -> None:
        """Read and write a call that was just begun, until it breaks.

        Args:
            call: The call; messages are written as bytes.
            receive: Gets each message of the server, and passes answers to `resolve`.
        """
        self.last_heard = self.opened = math.inf
        self.lost: StreamLostError | None = None
        self._call = call
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._requests: dict[int, tuple[asyncio.Future[T], float]] = {}
        # uvloop returns handles without `when` for times that have passed.
        self._timer: asyncio.Handle | None = None
        self._timer_at = math.inf
        self.outbox: deque[Message] = deque()
        self._idle: asyncio.Future[None] | None = None  # what the writer waits for
        # To cancel a write or a read would end the stream, so callers do neither.
        self._writer = asyncio.create_task(self._write_all())
        self._reader = asyncio.create_task(self._read_all())

    def send(self, message: Message) -> None:
        """Write a message after those that wait."""
        self.outbox.append(message)
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def expect(self, deadline: float) -> tuple[int, "asyncio.Future[T]"]:
        """Return a number for a request, and the future of its answer.

        The future fails with TimeoutError at the deadline (in `loop.time()`, or infinite), and
        with StreamLostError when the stream breaks.

        Raises:
            StreamLostError: The stream is over.
        """
        if self.lost is not None:
            raise self.lost
        number, answer = next(self._numbers), self._loop.create_future()
        self._requests[number] = answer, deadline
        if deadline < self._timer_at:
            self._set_timer(deadline)
        return number, answer

    def resolve(self, number: int, answer: T) -> None:
        """Complete the request of that number, if it still waits."""
        waiting, _ = self._requests.pop(number, (None, 0.0))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def answered(self) -> None:
        """Wait until every request has its answer, or its time is over."""
        if waiting := [answer for answer, _ in self._requests.values()]:
            await asyncio.wait(waiting)

    async def wait(self) -> None:
        """Wait until the stream breaks.

        Raises:
            StreamLostError: Always, in the end.
        """
        await asyncio.shield(self._reader)
        raise self.lost or StreamLostError("the stream has ended")

    def break_off(self, reason: str) -> None:
        """Give the stream up; requests without an answer fail."""
        self._end(StreamLostError(reason))
        self._call.cancel()

    async def close(self, reason: str) -> None:
        """Give the stream up, and wait for its tasks."""
        self.break_off(reason)
        self._reader.cancel()
        await asyncio.wait((self._reader, self._writer))

    async def _write_all(self) -> None:
        try:
            with suppress(*_ENDINGS):
                await self._call.wait_for_connection()
                self.last_heard = self._loop.time()
                await self._call.initial_metadata()
                self.opened = self._loop.time()
                while True:
                    while not self.outbox:
                        self._idle = self._loop.create_future()
                        await self._idle
                    message = self.outbox.popleft()
                    encoded = message if isinstance(message, bytes) else message()
                    if encoded:
                        await self._call.write(encoded)
        finally:
            self._call.cancel()  # the reader finds out why

    async def _read_all(self) -> None:
        error = StreamLostError("the stream ended with an error of its reader")
        message: Any
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                self.last_heard = self._loop.time()
                self._receive(message)
            error = StreamLostError("the other side closed the stream")
        except _ENDINGS as ending:
            error = _reason(ending)
        finally:
            self._end(error)
            self._call.cancel()

    def _end(self, error: StreamLostError) -> None:
        if self.lost is not None:
            return
        self.lost = error
        self._writer.cancel()
        if self._timer is not None:
            self._timer.cancel()
        for answer, _ in self._requests.values():
            _fail(answer, error)
        self._requests.clear()

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = self._loop.call_at(when, self._expire), when

    def _expire(self) -> None:
        """Fail the requests whose deadline is over, and set the timer for the next deadline."""
        self._timer, self._timer_at, now = None, math.inf, self._loop.time()
        for number, (answer, deadline) in list(self._requests.items()):
            if deadline <= now + TIMER_RESOLUTION:
                del self._requests[number]
                _fail(answer, TimeoutError())
        following = min((when for _, when in self._requests.values()), default=math.inf)
        if following < math.inf:
            self._set_timer(following)


def _fail(answer: "asyncio.Future[Any]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # asyncio logs exceptions that nobody asked for


def _reason(ending: BaseException) -> StreamLostError:
    if isinstance(ending, grpc.aio.AioRpcError):
        return StreamLostError(ending_of(ending))
    if isinstance(ending, asyncio.InvalidStateError):
        return StreamLostError(f"the stream has ended: {ending}")
    return StreamLostError("the stream was cancelled")
