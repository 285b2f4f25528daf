"""Sessions of gateways: any number of binds at a time, answered in the order in which they end."""

import asyncio
import functools
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import grpc
import grpc.aio

from moorage.v1 import binder_pb2 as pb
from moorage_host.rpc.convert import set_duration
from moorage_host.rpc.errors import CallError, reason_of, report, status_of
from moorage_host.rpc.state import check_room
from services.binder.binding.attempt import BindAttempt
from services.binder.binding.binder import Binder, too_late
from services.binder.binding.outcomes import BindError, BindPluginRun, BindResult
from services.binder.wire import (
    OUTCOMES,
    binding_from_proto,
    call_error,
    plugin_to_proto,
    policy_from_proto,
)

Context = grpc.aio.ServicerContext[Any, Any]
Request = pb.BinderServiceSessionRequest
Response = pb.BinderServiceSessionResponse

DeadlineOf = Callable[[float | None], float]
"""Of the time that the caller has, until when a bind may work, on the monotonic clock."""

CODES = {code.value[0]: code for code in grpc.StatusCode}

UNREAD_ANSWERS = 1024
"""Answers that a caller has not read, after which no more binds are read of it."""


class Sessions:
    """The streams that are open."""

    def __init__(self, binder: Binder, deadline_of: DeadlineOf, most: int) -> None:
        """Have *binder* do the binds, each until `deadline_of` its caller's time.

        At most so many sessions may be open.
        """
        self._most = most
        self._binder = binder
        self._deadline_of = deadline_of
        self._sessions: set[_Session] = set()
        self._is_draining = False

    async def run(self, requests: AsyncIterator[Request], context: Context) -> None:
        """Do the binds of one stream.

        Raises:
            CallError: The binder drains (UNAVAILABLE), or too many sessions are open
                (RESOURCE_EXHAUSTED).
        """
        if self._is_draining:
            raise _ending()
        check_room(len(self._sessions), self._most)
        session = _Session(self._binder, self._deadline_of)
        reader = asyncio.create_task(session.read(requests))
        reader.add_done_callback(session.read_all)
        self._sessions.add(session)
        try:
            await context.send_initial_metadata(())  # the caller waits for somebody
            # Tasks of their own: each message would pass all frames of the call otherwise.
            await asyncio.create_task(session.write(context))
            if reader.done():
                reader.result()  # what cannot be read ends the stream
        finally:
            self._sessions.discard(session)
            reader.cancel()
            session.close()

    async def bind(self, bind: pb.BindRequest, seconds: float | None) -> pb.BindResponse:
        """Do one bind whose caller has *seconds*, as a session of one message.

        Raises:
            CallError: The pod is not bound, or that is not known.
        """
        session, request = _Session(self._binder, self._deadline_of), Request(bind=bind)
        if seconds is not None:
            set_duration(request.timeout, seconds)
        session.begin(request)
        try:
            answer = await session.answers.get()
        finally:
            session.close()
        assert answer is not None  # noqa: S101 - this session takes more
        if code := answer.status.code:
            raise CallError(CODES[code], answer.status.message, answer.reason)
        return pb.BindResponse(outcome=answer.outcome)

    def drain(self) -> None:
        """Take no more binds; the streams end as soon as those under way are answered."""
        self._is_draining = True
        for session in self._sessions:
            session.drain()


class _Session:
    """The binds of one stream; `answers` ends with None."""

    def __init__(self, binder: Binder, deadline_of: DeadlineOf) -> None:
        self.answers: asyncio.Queue[Response | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._may_read = asyncio.Event()
        self._binder = binder
        self._deadline_of = deadline_of
        self._takes_more = True
        self._opened = time.monotonic()  # before the caller can have the headers
        # What gives up the wait for a bind that is late, by a number of our own. The binds
        # themselves are the binder's.
        self._waits: dict[int, asyncio.TimerHandle] = {}
        self._numbers = itertools.count()

    async def read(self, requests: AsyncIterator[Request]) -> None:
        """Begin the binds, until the caller has no more."""
        async for request in requests:
            while self.answers.qsize() >= UNREAD_ANSWERS:  # a caller must read what it asks for
                self._may_read.clear()
                await self._may_read.wait()
            try:
                self.begin(request)
            except Exception as error:  # noqa: BLE001 - every bind gets an answer
                report(error)
                self._answer(request.id, error)

    async def write(self, context: Context) -> None:
        """Write the answers; a stream takes one message at a time."""
        while (answer := await self.answers.get()) is not None:
            self._may_read.set()
            await context.write(answer)

    def read_all(self, _: asyncio.Task[None]) -> None:
        """End the answers as soon as nobody waits for one: there are no more binds to come."""
        self._takes_more = False
        self._end_if_idle()

    def drain(self) -> None:
        """Say that no more binds are taken, and end the answers as soon as nobody waits for one."""
        self.answers.put_nowait(Response(ending=True))
        self._takes_more = False
        self._end_if_idle()

    def close(self) -> None:
        """Wait for nothing any more. The binds go on."""
        for late in self._waits.values():
            late.cancel()
        self._waits.clear()

    def begin(self, request: Request) -> None:
        """Begin a bind.

        Raises:
            CallError: It is malformed, or cannot be taken.
        """
        if not self._takes_more:
            raise _ending()
        bind = request.bind
        has_limit = request.HasField("timeout")
        remaining = request.timeout.ToNanoseconds() / 1e9 if has_limit else None
        if remaining is not None and request.HasField("sent"):
            sent = self._opened + request.sent.ToNanoseconds() / 1e9
            remaining -= max(time.monotonic() - sent, 0.0)
        deadline = self._deadline_of(remaining)
        binding = binding_from_proto(bind, self._binder.fence.epoch)
        policy = policy_from_proto(bind) if bind.HasField("policy") else None
        try:
            attempt = self._binder.begin(
                binding, deadline=deadline, epoch=bind.epoch, policy=policy
            )
        except BindError as error:
            raise call_error(error) from error
        if bind.warning:
            attempt.warning = bind.warning
        if request.reports_waits:
            attempt.report_wait = functools.partial(self._waits_for, request.id, bind.uid)
        number, left = next(self._numbers), deadline - time.monotonic()
        self._waits[number] = self._loop.call_later(
            left, self._give_up, number, request.id, attempt
        )
        attempt.task.add_done_callback(functools.partial(self._ended, number, request.id, attempt))

    def _waits_for(self, caller_number: int, uid: str, plugin: str, awaited: str) -> None:
        """Report to the caller that a plugin has a bind wait for others."""
        wait = pb.PermitWait(uid=uid, plugin=plugin, awaited=awaited)
        self.answers.put_nowait(Response(id=caller_number, wait=wait))

    def _ended(
        self, number: int, caller_number: int, attempt: BindAttempt, task: asyncio.Task[BindResult]
    ) -> None:
        late = self._waits.pop(number, None)
        if late is None:
            return  # it was too late, or the caller hung up
        late.cancel()
        result: BindResult | BaseException
        if task.cancelled():
            message = "the binder gave the bind up; repeat it"
            result = CallError(grpc.StatusCode.UNAVAILABLE, message)
        else:
            result = task.exception() or task.result()
        self._answer(caller_number, result, attempt.plugins.values())

    def _give_up(self, number: int, caller_number: int, attempt: BindAttempt) -> None:
        del self._waits[number]
        self._answer(caller_number, too_late(attempt.binding), attempt.plugins.values())

    def _answer(
        self, number: int, result: BindResult | BaseException, plugins: Iterable[BindPluginRun] = ()
    ) -> None:
        answer = Response(id=number, plugins=map(plugin_to_proto, plugins))
        if isinstance(result, BindResult):
            answer.outcome = OUTCOMES[result]
        else:
            error = call_error(result) if isinstance(result, BindError) else result
            assert isinstance(error, Exception)  # noqa: S101 - others end the process
            code, answer.status.message = status_of(error)  # the binder has logged it
            answer.status.code, answer.reason = code.value[0], reason_of(error)
        self.answers.put_nowait(answer)
        if not self._takes_more:
            self._end_if_idle()

    def _end_if_idle(self) -> None:
        if not self._waits:
            self.answers.put_nowait(None)


def _ending() -> CallError:
    return CallError(grpc.StatusCode.UNAVAILABLE, "the binder is about to end")
