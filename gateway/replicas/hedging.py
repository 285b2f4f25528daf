"""Has replicas do a piece of work: one, and another one whenever one is slow or lost.

The first answer counts. Work is never taken back: cancelling a write would break the stream, and a
replica that is slow must count as busy until it has answered.
"""

import asyncio
from typing import Protocol

from gateway.replicas.latency import HedgeLimits, Pace
from gateway.replicas.members import Member, Members
from gateway.replicas.metrics import Cause, SessionMetrics
from gateway.replicas.session import SessionLostError
from gateway.replicas.work import Answer, Work

Attempt = asyncio.Task[Answer | Exception | None]
"""What comes of asking a replica: an answer, None if the replica is lost, or a bug of ours."""


class Replicas(Protocol):
    """Who takes part."""

    @property
    def members(self) -> Members:
        """The replicas that may be asked."""

    async def next_member(self) -> Member:
        """Return the replica whose turn it is; wait for one if there is none."""

    def lose(self, member: Member, reason: str) -> None:
        """Give no more work to a replica that is lost."""

    def give_up(self, member: Member) -> None:
        """Give no more work to a replica that hangs."""


class Racing:
    """Asks replicas until one of them answers."""

    def __init__(
        self,
        replicas: Replicas,
        tasks: asyncio.TaskGroup,
        limits: HedgeLimits,
        metrics: SessionMetrics,
    ) -> None:
        """Ask *replicas* in *tasks*, which outlive the work for those that are slower."""
        self._replicas = replicas
        self._tasks = tasks
        self._limits = limits
        self._metrics = metrics
        self._pace = Pace(limits)

    async def alone(self, member: Member, work: Work) -> Answer | None:
        """Ask the only replica: nobody can be faster, so that needs no task of its own.

        Returns:
            None if the replica is lost.

        Raises:
            TimeoutError: It has not answered before the deadline.
        """
        answered = asyncio.get_running_loop().create_future()
        member.unanswered.add(answered)
        try:
            answer = await member.session.run(work)
        except SessionLostError as error:
            self._replicas.lose(member, str(error))
            return None
        finally:
            member.unanswered.discard(answered)
            answered.cancel()
        self._pace.note(work, answer)
        return answer

    async def first_answer(
        self, work: Work, asked: set[Member], cause: Cause | None = None
    ) -> Answer:
        """Return the first answer to *work*.

        Args:
            work: The work.
            asked: Gets the replicas that owe an answer.
            cause: Why it is sent again, if it is.
        """
        race: dict[Attempt, Member] = {}
        while True:
            member = await self._another(race)
            if member is not None:
                asked.add(member)
                if cause is not None:
                    self._metrics.resent(cause)
                race[self._start(member, work)] = member
            ended = await self._first_of(race, work)
            done = {race.pop(attempt) for attempt in ended}
            answer = _answer(ended)
            asked -= done
            if answer is not None:
                self._pace.note(work, answer)
                return answer
            cause = "lost" if done else "slow"

    async def _another(self, race: dict[Attempt, Member]) -> Member | None:
        """Return a further replica, if there is one to spare; wait for one if nobody is asked."""
        if race:
            return self._replicas.members.spare(race.values())
        return await self._replicas.next_member()

    def _start(self, member: Member, work: Work) -> Attempt:
        attempt = self._tasks.create_task(self._attempt(member, work))
        member.unanswered.add(attempt)
        attempt.add_done_callback(member.unanswered.discard)
        return attempt

    async def _attempt(self, member: Member, work: Work) -> Answer | Exception | None:
        """Ask a replica; goes on if another one was faster."""
        try:
            return await member.session.run(work)
        except SessionLostError as error:
            self._replicas.lose(member, str(error))
        except TimeoutError:
            self._replicas.give_up(member)
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            return error
        return None

    async def _first_of(self, race: dict[Attempt, Member], work: Work) -> set[Attempt]:
        """Wait for replicas as long as they usually take; return what has ended."""
        first, floor = asyncio.FIRST_COMPLETED, self._limits.hedge_floor
        ended, _ = await asyncio.wait(race, timeout=floor, return_when=first)
        if not ended:
            remaining = work.deadline - asyncio.get_running_loop().time()
            longer = max(self._pace.patience(work, remaining) - floor, 0)
            ended, _ = await asyncio.wait(race, timeout=longer, return_when=first)
        return ended


def _answer(ended: set[Attempt]) -> Answer | None:
    """Return an answer if there is one."""
    for attempt in ended:
        outcome = attempt.result()
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is not None:
            return outcome
    return None
