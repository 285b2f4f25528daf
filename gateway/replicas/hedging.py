"""Sends work to one replica, and to a further one whenever one is slow or lost.

The first answer counts. Work is never cancelled: a replica that is slow counts as busy until it has
answered.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Hashable
from functools import partial
from typing import Any, Protocol

from gateway.replicas.members import Member, Members
from gateway.replicas.metrics import Cause, SessionMetrics
from gateway.replicas.work import Answer, Sent, Work
from moorage_host.rpc.stream import StreamLostError

KEPT = 128
"""Round trips that are kept for each sort of work, the newest."""

ENOUGH = 10
"""Round trips that must be known before the hedge delay depends on them."""

SHARE = 0.25
"""Until then, the hedge delay as a part of the remaining time."""

FEW_NODES = 100
"""Work on fewer nodes counts as work on so many: a message has a fixed cost."""


class HedgeLimits(Protocol):
    """When an answer is late."""

    @property
    def hedge_quantile(self) -> float: ...  # noqa: D102
    @property
    def hedge_factor(self) -> float: ...  # noqa: D102
    @property
    def hedge_floor(self) -> float: ...  # noqa: D102


class LatencyTracker:
    """Keeps round trips, by sort of work and relative to the number of nodes.

    Attributes:
        limits: When an answer is late.
    """

    def __init__(self, limits: HedgeLimits) -> None:
        self.limits = limits
        self._recent: dict[Hashable, deque[float]] = {}

    def observe(self, work: Work, answer: Answer) -> None:
        """Record how long an answer took, unless it reports a failure."""
        if answer.result.status.code:
            return
        recent = self._recent.get(work.sort)
        if recent is None:
            recent = self._recent[work.sort] = deque(maxlen=KEPT)
        recent.append(answer.seconds / max(work.nodes, FEW_NODES))

    def hedge_delay(self, work: Work, remaining: float) -> float:
        """Return after how many seconds to ask another replica.

        Args:
            work: The work.
            remaining: Seconds until its deadline.
        """
        floor = self.limits.hedge_floor
        recent = self._recent.get(work.sort, ())
        if len(recent) < ENOUGH:
            return max(remaining * SHARE, floor)
        index = min(int(self.limits.hedge_quantile * len(recent)), len(recent) - 1)
        usual = sorted(recent)[index] * max(work.nodes, FEW_NODES)
        return max(usual * self.limits.hedge_factor, floor)


class Replicas(Protocol):
    """The replicas that may be asked."""

    @property
    def members(self) -> Members:
        """Those that take part."""

    async def next_member(self, deadline: float, version: str = "") -> Member:
        """Return the replica whose turn it is; wait for one until *deadline* if there is none."""

    def mark_lost(self, member: Member, reason: str) -> None:
        """Give no more work to a replica that is lost."""

    def give_up(self, member: Member) -> None:
        """Give no more work to a replica that hangs."""


class HedgedCall:
    """One piece of work, and the replicas that it was sent to."""

    def __init__(
        self,
        replicas: Replicas,
        work: Work,
        latency: LatencyTracker,
        metrics: SessionMetrics,
    ) -> None:
        self._replicas = replicas
        self._work = work
        self._latency = latency
        self._metrics = metrics
        self._sent: dict[asyncio.Future[Any], tuple[Member, Sent]] = {}

    async def run(self) -> Answer:
        """Return the first answer.

        Raises:
            CallFailedError: No replica takes part in time.
            VersionGoneError: None has the version that the work is for.
            TimeoutError: No replica answers before the deadline.
        """
        cause: Cause | None = None
        while True:
            member = await self._another()
            if member is not None:
                if cause is not None:
                    self._metrics.resent(cause)
                self._send(member)
            ended = await self._first_ended()
            answer = self._answer(ended)
            if answer is not None:
                self._latency.observe(self._work, answer)
                return answer
            cause = "lost" if ended or not self._sent else "slow"

    async def _another(self) -> Member | None:
        """Return a further replica; wait for one only if no replica has the work."""
        if self._sent:
            return self._replicas.members.spare(self._asked(), self._work.version)
        return await self._replicas.next_member(self._work.deadline, self._work.version)

    def _asked(self) -> Collection[Member]:
        return [member for member, _ in self._sent.values()]

    def _send(self, member: Member) -> None:
        try:
            sent = member.session.start(self._work)
        except StreamLostError as error:
            self._replicas.mark_lost(member, str(error))
            return
        self._sent[sent.answer] = member, sent
        member.unanswered.add(sent.answer)
        sent.answer.add_done_callback(partial(self._ended, member))

    def _ended(self, member: Member, answer: "asyncio.Future[Any]") -> None:
        """Note an answer, or the loss of a replica, even if another replica was faster."""
        member.unanswered.discard(answer)
        error = None if answer.cancelled() else answer.exception()
        if isinstance(error, StreamLostError):
            self._replicas.mark_lost(member, str(error))
        elif isinstance(error, TimeoutError):
            self._replicas.give_up(member)

    async def _first_ended(self) -> Collection["asyncio.Future[Any]"]:
        """Wait for an answer or a loss, but only for the hedge delay; return what has ended."""
        if not self._sent:
            return ()  # lost before it was asked
        wait = partial(asyncio.wait, self._sent, return_when=asyncio.FIRST_COMPLETED)
        if not self._replicas.members.has_others(self._asked(), self._work.version):
            return (await wait())[0]
        floor = self._latency.limits.hedge_floor
        ended, _ = await wait(timeout=floor)
        if not ended:
            remaining = self._work.deadline - asyncio.get_running_loop().time()
            delay = self._latency.hedge_delay(self._work, remaining)
            ended, _ = await wait(timeout=max(delay - floor, 0))
        return ended

    def _answer(self, ended: Collection["asyncio.Future[Any]"]) -> Answer | None:
        """Return an answer if there is one."""
        for each in ended:
            member, sent = self._sent.pop(each)
            error = each.exception()
            if error is None:
                seconds = asyncio.get_running_loop().time() - sent.start
                return Answer(each.result().result, sent.about, seconds, member.session.version)
            if not isinstance(error, StreamLostError):
                raise error
        return None
