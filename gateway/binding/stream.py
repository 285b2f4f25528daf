"""One stream to a binder, from its opening until it breaks: binds down, answers up in any order."""

import asyncio
import itertools

import grpc
import grpc.aio

from gateway.replicas.errors import ENDINGS
from moorage.v1 import binder_pb2 as pb
from moorage_host.rpc.convert import set_duration

Call = grpc.aio.StreamStreamCall[bytes, pb.BinderServiceSessionResponse]

CODES = {code.value[0]: code for code in grpc.StatusCode}

SILENCE_SECONDS = 1.0
"""A binder answers in time, if only that it does not know. One that says nothing for so long and
lets a bind's deadline pass hangs; the next binds look for another one."""


class BinderError(Exception):
    """The binder did not do a bind, or has not said so; `code` is gRPC's, whatever brought it."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class NoSessionsError(Exception):
    """The binder is of an earlier version, which has no sessions."""


class _Bind:
    """A bind that waits for its answer."""

    __slots__ = ("answer", "deadline", "number", "request", "since")

    def __init__(self, number: int, request: pb.BindRequest, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.request = request
        self.since = loop.time()
        self.deadline = deadline
        self.answer: asyncio.Future[pb.BinderServiceSessionResponse] = loop.create_future()


class BindStream:
    """An open stream, or one that waits for a binder.

    Attributes:
        is_open: Whether it takes binds.
        tasks: They end when the stream does.
    """

    def __init__(self, call: Call) -> None:
        """Use a call that was just begun."""
        self.is_open = True
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._binds: dict[int, _Bind] = {}
        self._outbox: asyncio.Queue[_Bind] = asyncio.Queue()
        self._heard = float("inf")  # not connected
        # Tasks of their own: to cancel a write would end the stream.
        self.tasks = [asyncio.create_task(each) for each in (self._read(), self._write())]

    async def bind(self, request: pb.BindRequest, deadline: float) -> None:
        """Hand a bind over and wait until it is done.

        Raises:
            BinderError: UNAVAILABLE if the stream broke, DEADLINE_EXCEEDED if there is no answer in
                time, or what the binder answered.
            NoSessionsError: The binder is of an earlier version.
        """
        bind = _Bind(next(self._numbers), request, deadline)
        self._binds[bind.number] = bind
        late = self._loop.call_at(deadline, self._too_late, bind)
        self._outbox.put_nowait(bind)
        try:
            status = (await bind.answer).status
        finally:
            late.cancel()
            self._binds.pop(bind.number, None)
        if status.code:
            raise BinderError(CODES.get(status.code, grpc.StatusCode.UNKNOWN), status.message)

    def break_off(self, why: str) -> None:
        """Give the stream up, and tell those who wait."""
        self._end(_lost(why))
        self._call.cancel()

    async def _write(self) -> None:
        try:
            await self._call.wait_for_connection()
            self._heard = self._loop.time()
            # What is written before would be kept, and sent to whichever binder comes at last.
            await self._call.initial_metadata()
            while True:
                bind = await self._outbox.get()
                if bind.answer.done():
                    continue  # its time ran out before there was a binder
                message = pb.BinderServiceSessionRequest(id=bind.number, bind=bind.request)
                set_duration(message.timeout, max(bind.deadline - self._loop.time(), 0.001))
                await self._call.write(message.SerializeToString())
        except ENDINGS:
            self._call.cancel()  # then the other task hears of it

    async def _read(self) -> None:
        error: Exception = _lost("the binder ended the session")
        try:
            while isinstance(answer := await self._call.read(), pb.BinderServiceSessionResponse):
                self._take(answer)
        except grpc.aio.AioRpcError as failure:
            is_old = failure.code() is grpc.StatusCode.UNIMPLEMENTED
            error = NoSessionsError() if is_old else _lost(failure.details() or "")
        except (asyncio.InvalidStateError, asyncio.CancelledError):
            error = _lost("the stream to the binder broke")
        finally:
            self._end(error)

    def _take(self, answer: pb.BinderServiceSessionResponse) -> None:
        self._heard = self._loop.time()
        if answer.ending:
            self.is_open = False  # those under way are answered yet
        elif (bind := self._binds.get(answer.id)) and not bind.answer.done():
            bind.answer.set_result(answer)

    def _too_late(self, bind: _Bind) -> None:
        if not bind.answer.done():
            code = grpc.StatusCode.DEADLINE_EXCEEDED
            bind.answer.set_exception(BinderError(code, "Deadline Exceeded"))
            if max(bind.since, self._heard) + SILENCE_SECONDS <= self._loop.time():
                self.break_off("the binder does not answer")

    def _end(self, error: Exception) -> None:
        self.is_open = False
        for bind in self._binds.values():
            if not bind.answer.done():
                bind.answer.set_exception(error)
        for task in self.tasks:
            task.cancel()


def _lost(why: str) -> BinderError:
    return BinderError(grpc.StatusCode.UNAVAILABLE, why)
