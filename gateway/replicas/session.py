"""One session with one replica: state and cycles down, acknowledgements and results up."""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import grpc.aio
import structlog

from gateway.replicas.errors import ENDINGS, SessionLostError, SessionRefusedError, lose
from gateway.replicas.feed import Kinds, StateFeed
from gateway.replicas.metrics import SessionMetrics
from gateway.replicas.moments import BetweenCycles, quiet_moment
from gateway.replicas.service import Kind
from gateway.replicas.work import Answer, Work
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.channel import connect
from moorage_host.rpc.convert import kind_to_proto, set_duration

__all__ = ["Session", "SessionLostError", "SessionRefusedError"]

log = structlog.get_logger()

REPLICA_SHARE = 0.95
"""The part of the remaining time that a replica gets; the rest is for the way back."""

PARTS_AHEAD = 16
"""Parts of a full snapshot that a replica may have before it, lest it is far behind at the end."""


class Session:
    """An open stream to a replica that has caught up.

    Attributes:
        replica: The replica's name for itself.
        plugins: What the replica can run.
    """

    def __init__(self, kind: Kind, feed: StateFeed, metrics: SessionMetrics, target: str) -> None:
        self.replica = ""
        self.plugins: list[pb.Plugin] = []
        self._kind = kind
        self._feed = feed
        self._metrics = metrics
        self._channel = connect(target)
        self._call: grpc.aio.StreamStreamCall[bytes, Any] | None = None
        self._sent = 0
        self._kinds: Kinds = frozenset()
        self._numbers = itertools.count(1)
        self._results: dict[int, asyncio.Future[Any]] = {}
        self._lost: SessionLostError | None = None
        self._outbox: asyncio.Queue[bytes] = asyncio.Queue()
        self._switching: tuple[str, asyncio.Future[str]] | None = None
        self._is_heard = False

    async def greet(self, timeout: float) -> None:
        """Open the stream and hear who is there.

        Raises:
            SessionLostError: Nobody answers in time, or not with a greeting.
        """
        self._call = self._kind.open(self._channel)
        try:
            async with asyncio.timeout(timeout):
                answer = await self._read()
        except TimeoutError as error:
            raise SessionLostError(f"no greeting within {timeout:g} s") from error
        if answer.WhichOneof("answer") != "hello":
            raise SessionLostError("the first answer is not a greeting")
        self.replica, self.plugins = answer.hello.replica, list(answer.hello.plugins)

    async def synchronize(
        self, policy: pb.Policy, kinds: Kinds, between_cycles: BetweenCycles
    ) -> None:
        """Send the whole state and wait until the replica has it; cycles come first.

        Args:
            policy: The policy.
            kinds: The further kinds whose objects the replica gets, now and later.
            between_cycles: Holds cycles off.

        Raises:
            SessionLostError: The stream broke.
            SessionRefusedError: The replica cannot use the policy.
        """
        self._kinds, unanswered = kinds, 0
        with closing(self._feed.full(policy, kinds)) as parts:
            while True:
                await quiet_moment(between_cycles)
                if (part := next(parts, None)) is None:
                    break
                self._sent = part.generation
                await self._write(self._encoded(part, "full"))
                unanswered += 1
                if unanswered == PARTS_AHEAD:
                    await self._hear_of_part()
                    unanswered -= 1
        for _ in range(unanswered):
            await self._hear_of_part()

    def send_changes(self, least: int = 1) -> None:
        """Send what the replica has not been told yet, if that is at least so many changes.

        A replica that does not keep up gets them together, later.

        Raises:
            SessionLostError: The replica is too far behind.
        """
        if self._feed.generation < self._sent + least or not self._outbox.empty():
            return
        state = self._outstanding()
        if state is not None:
            self._outbox.put_nowait(self._encoded(state, "delta"))

    async def switch(self, policy: pb.Policy) -> None:
        """Have the replica run another policy from here on; a new session only makes it ready.

        Raises:
            SessionLostError: The stream broke.
            SessionRefusedError: The replica cannot use the policy, and goes on with the former one.
        """
        answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._switching = policy.revision, answered
        try:
            await self._send(pb.State(generation=self._sent, partial=not self._sent, policy=policy))
            while not (self._is_heard or answered.done()):
                self._acknowledged((await self._read()).acknowledgement)
            problem = await answered
        finally:
            self._switching = None
        if problem:
            raise SessionRefusedError(problem)

    async def open_kinds(self, kinds: Kinds) -> None:
        """Let the replica have further kinds too, with all their objects, now and later.

        Raises:
            SessionLostError: The stream broke.
        """
        opened, self._kinds = kinds - self._kinds, self._kinds | kinds
        for state in self._feed.opening(self._sent, opened) if opened else ():
            await self._send(state, "delta")

    async def keep_kinds(self, kinds: Kinds) -> None:
        """Take all further kinds but *kinds* from the replica.

        Raises:
            SessionLostError: The stream broke.
        """
        closed, self._kinds = sorted(self._kinds - kinds), self._kinds & kinds
        if closed:
            removed = [kind_to_proto(kind) for kind in closed]
            await self._send(pb.State(generation=self._sent, removed_kinds=removed))

    async def run(self, work: Work) -> Answer:
        """Send work, with all changes before it in the same message, and wait for its result.

        Raises:
            SessionLostError: The stream broke.
            TimeoutError: There is no result before the deadline.
        """
        loop = asyncio.get_running_loop()
        start = loop.time()
        number = next(self._numbers)
        result = self._results[number] = loop.create_future()
        late = loop.call_at(work.deadline, _too_late, result)
        try:
            if self._lost is not None:  # between the choice of this replica and now
                raise self._lost
            about = self._ask(number, work, work.deadline - start)
            return Answer(await result, about, loop.time() - start)
        finally:
            late.cancel()
            self._results.pop(number, None)

    def _ask(self, number: int, work: Work, remaining: float) -> Any:
        state, request = self._outstanding(), self._kind.request()
        about = work.fill(request)
        cycle = request.cycle
        cycle.id = number
        set_duration(cycle.timeout, max(remaining * REPLICA_SHARE, 0.001))
        size = 0
        if state is not None:
            request.state.CopyFrom(state)
            size = state.ByteSize()
            self._metrics.sent("delta", size)
        encoded = request.SerializeToString()
        self._metrics.sent("cycle", len(encoded) - size)
        self._outbox.put_nowait(encoded)
        return about

    async def listen(self, caught_up: Callable[[int], None]) -> None:
        """Send what is to be sent, and hand results to those who wait, until the stream breaks.

        Raises:
            SessionLostError: Always, in the end.
        """
        self._is_heard = True
        writing = asyncio.create_task(self._write_all())
        try:
            while True:
                answer = await self._read()
                if answer.WhichOneof("answer") == "acknowledgement":
                    caught_up(answer.acknowledgement.generation)
                    self._acknowledged(answer.acknowledgement)
                    continue
                if answer.result.generation:
                    caught_up(answer.result.generation)
                waiting = self._results.get(answer.result.cycle)
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer.result)
        except SessionLostError as error:
            self._fail(error)
            raise
        finally:
            writing.cancel()

    def break_off(self) -> None:
        """Give the stream up; whoever listens to it hears of that."""
        if self._call is not None:
            self._call.cancel()

    async def close(self) -> None:
        """End the stream."""
        self._fail(SessionLostError("the session was closed"))
        self.break_off()
        await self._channel.close()

    def _outstanding(self) -> pb.State | None:
        try:
            self._sent, state = self._feed.since(self._sent, self._kinds)
        except LookupError as error:
            self.break_off()  # the next session begins with a full snapshot
            raise SessionLostError(str(error)) from error
        return state

    async def _send(self, state: pb.State, part: str = "") -> None:
        """Send a state after those that wait to be sent; without waiting once others send too."""
        encoded = self._encoded(state, part)
        if self._is_heard:
            self._outbox.put_nowait(encoded)
        else:
            await self._write(encoded)

    def _encoded(self, state: pb.State, part: str = "") -> bytes:
        """Write a state down; counted as a "full" snapshot or a "delta", if it is one."""
        encoded: bytes = self._kind.request(state=state).SerializeToString()
        if part:
            self._metrics.sent(part, len(encoded))
        return encoded

    async def _hear_of_part(self) -> None:
        answer = await self._read()
        if answer.acknowledgement.policy_error:
            raise SessionRefusedError(answer.acknowledgement.policy_error)

    async def _write_all(self) -> None:
        """Write in a task of its own: to cancel a write would end the stream."""
        with suppress(SessionLostError):
            while True:
                await self._write(await self._outbox.get())
        self.break_off()

    async def _write(self, encoded: bytes) -> None:
        assert self._call is not None  # noqa: S101 - greeted first
        try:
            await self._call.write(encoded)
        except ENDINGS as error:
            lose(error)

    async def _read(self) -> Any:
        assert self._call is not None  # noqa: S101 - greeted first
        try:
            answer = await self._call.read()
        except ENDINGS as error:
            lose(error)
        if answer is grpc.aio.EOF:
            raise SessionLostError("the replica closed the stream")
        return answer

    def _acknowledged(self, answer: pb.Acknowledgement) -> None:
        """Tell whoever has the replica change its policy whether it did."""
        revision, answered = self._switching or ("", None)
        is_told = answer.policy_error or answer.policy_revision == revision
        if answered is not None and not answered.done() and is_told:
            answered.set_result(answer.policy_error)

    def _fail(self, error: SessionLostError) -> None:
        self._lost = self._lost or error
        switching = (self._switching[1],) if self._switching else ()
        for waiting in (*self._results.values(), *switching):
            if not waiting.done():
                waiting.set_exception(error)


def _too_late(result: "asyncio.Future[Any]") -> None:
    if not result.done():
        result.set_exception(TimeoutError())
