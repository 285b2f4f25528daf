"""All replicas of one kind: finds them, keeps a session with each, hands out work.

A replica that is lost is called again with growing pauses; it takes part once it has caught up. If
one is slow or lost, another gets the same work, and the first answer counts.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import structlog

from gateway.calls import CallFailedError
from gateway.replicas.dns import Resolver
from gateway.replicas.feed import Kinds, StateFeed
from gateway.replicas.hedging import Racing
from gateway.replicas.latency import HedgeLimits
from gateway.replicas.members import Member, Members
from gateway.replicas.metrics import SessionMetrics
from gateway.replicas.moments import BetweenCycles
from gateway.replicas.service import Kind
from gateway.replicas.session import Session, SessionLostError, SessionRefusedError
from gateway.replicas.sources import ClusterSource, ObjectSource, PolicySource
from gateway.replicas.work import Answer, Work
from moorage.backoff import Backoff
from moorage.v1 import types_pb2 as pb

log = structlog.get_logger()

MANY_CHANGES = 50
"""Changes that are not left for the next cycle to bring along."""

FEW_CHANGES_TICKS = 5
"""Times `delta_interval` after which fewer changes are sent as well."""

SILENT = "does not answer in time"


class PoolLimits(HedgeLimits, Protocol):
    """The settings that a pool reads."""

    @property
    def session_timeout(self) -> float: ...  # noqa: D102
    @property
    def resolve_interval(self) -> float: ...  # noqa: D102
    @property
    def delta_interval(self) -> float: ...  # noqa: D102


class ReplicaPool:
    """The replicas of one kind.

    Attributes:
        kind: The kind of service.
        members: The replicas that take part.
        problem: Why there are none, or what went wrong last.
        turnover: How often a replica has begun or ceased to take part.
    """

    def __init__(
        self,
        kind: Kind,
        targets: Sequence[str],
        *,
        feed: StateFeed,
        policy: PolicySource,
        cluster: ClusterSource,
        objects: ObjectSource,
        limits: PoolLimits,
        metrics: SessionMetrics,
        between_cycles: BetweenCycles,
        patience: float = float("inf"),
    ) -> None:
        """Look for replicas at *targets* ("host:port").

        Args:
            kind: The kind of service.
            targets: Where replicas are.
            feed: The state that they replicate.
            policy: The policy that they run.
            cluster: Follows nodes and pods; no replica gets the state before they are read.
            objects: Follows what their plugins read besides nodes and pods.
            limits: Timeouts and intervals, in seconds.
            metrics: Counts sessions and bytes.
            between_cycles: Holds cycles off.
            patience: For how many seconds without any replica a cycle waits for one.
        """
        self.kind = kind
        self.problem = f"no {kind.name} replica has been reached yet"
        self._resolver = Resolver(targets)
        self._feed = feed
        self._policy = policy
        self._cluster = cluster
        self._objects = objects
        self._limits = limits
        self._metrics = metrics
        self._between_cycles = between_cycles
        self._patience = patience
        self.members = Members()
        self.turnover = 0
        self._changed = asyncio.Condition()
        self._lost_at = time.monotonic()
        self._joining = 0
        self._has_joined = False
        self._tasks = asyncio.TaskGroup()
        self._racing = Racing(self, self._tasks, limits, metrics)

    @property
    def ready(self) -> int:
        """How many replicas take part in cycles."""
        return len(self.members)

    @property
    def is_filling(self) -> bool:
        """Whether the very first replica is sent the state, or waits for it."""
        return bool(self._joining) and not self._has_joined

    @property
    def idle(self) -> int:
        """How many of them have no unanswered work."""
        return self.members.idle

    async def run(self) -> None:
        """Keep sessions with all replicas, until cancelled."""
        async with self._tasks as group:
            group.create_task(self._send_deltas())
            known: dict[str, asyncio.Task[None]] = {}
            while True:
                addresses = await self._resolver.addresses()
                self.problem = self._resolver.problem or self.problem
                for new in addresses - known.keys():
                    known[new] = group.create_task(self._keep_session(new))
                for gone in known.keys() - addresses:
                    group.create_task(self._retire(gone, known.pop(gone)))
                await asyncio.sleep(self._limits.resolve_interval)

    async def cycle(self, work: Work) -> Answer:
        """Return the first answer to *work*.

        It goes to a further replica whenever one is lost, or has not answered as soon as usual.

        Raises:
            CallFailedError: No replica answers in time.
        """
        asked: set[Member] = set()
        only = self.members.only
        try:
            if only is not None:
                asked.add(only)
                answer = await self._racing.alone(only, work)
                if answer is not None:
                    return answer
                asked.clear()
            async with asyncio.timeout_at(work.deadline):
                return await self._racing.first_answer(work, asked, "lost" if only else None)
        except TimeoutError as error:
            if not asked:
                raise CallFailedError(f"{self.kind.name} service is not available") from error
            # Replicas that are merely slow say so before the deadline: these hang.
            for member in asked:
                self.give_up(member)
            raise CallFailedError(f"{self.kind.name} service {SILENT}") from error

    def lose(self, member: Member, reason: str) -> None:
        """Give no more work to a replica until it has caught up again."""
        self._lose(member.place, member.session, reason)

    def give_up(self, member: Member) -> None:
        """Break off the session with a replica that hangs."""
        self.lose(member, SILENT)
        member.session.break_off()

    async def next_member(self) -> Member:
        """Take replicas in turn; wait for one if none is ready and one may be back soon."""
        async with self._changed:
            while not (member := self.members.next()):
                waited = time.monotonic() - self._lost_at
                if waited >= self._patience:
                    raise CallFailedError(f"{self.kind.name} service is not available")
                with suppress(TimeoutError):
                    async with asyncio.timeout(
                        None if self._patience == float("inf") else self._patience - waited
                    ):
                        await self._changed.wait()
        return member

    async def _keep_session(self, place: str) -> None:
        backoff = Backoff(0.1, 5.0)
        while True:
            session = Session(self.kind, self._feed, self._metrics, place)
            try:
                await self._serve(session, place, backoff.reset)
            except SessionRefusedError as error:
                self.problem = f"{self.kind.name} at {place} refuses the policy: {error}"
                log.warning("The policy is refused", service=self.kind.name, error=str(error))
            except SessionLostError as error:
                self._lose(place, session, str(error))
            finally:
                self._remove(place, session)
                self._objects.need(session, {})
                await session.close()
            await asyncio.sleep(backoff.next())

    async def _serve(self, session: Session, place: str, welcome: Callable[[], None]) -> None:
        await session.greet(self._limits.session_timeout)
        self._policy.learn(self.kind.policy, session.plugins)
        policy = await self._policy.for_kind(self.kind.policy)
        readers = self._policy.reads(self.kind.policy)
        self._objects.need(session, readers)
        if readers:
            self.problem = f"{self.kind.name} at {place} waits for objects that its plugins read"
            await self._objects.synced(readers)
        await self._send_everything(session, place, policy, frozenset(readers))
        welcome()
        while not await self._take_part(place, session, policy):
            policy = await self._follow(session)
        self._metrics.session_opened(self.ready)
        log.info("A replica takes part", service=self.kind.name, replica=session.replica)
        await session.listen(self._metrics.caught_up)

    async def _send_everything(
        self, session: Session, place: str, policy: pb.Policy, kinds: Kinds
    ) -> None:
        self._joining += 1
        try:
            self.problem = f"{self.kind.name} at {place} waits for nodes and pods"
            await self._cluster.until_synced()
            self.problem = f"{self.kind.name} at {place} is sent the state of the cluster"
            await session.synchronize(policy, kinds, self._between_cycles)
        finally:
            self._joining -= 1
            self._has_joined = True

    async def _take_part(self, place: str, session: Session, policy: pb.Policy) -> bool:
        """Let a replica take part unless it has another policy than the one in force."""
        async with self._changed:
            if (await self._policy.for_kind(self.kind.policy)).revision != policy.revision:
                return False
            self.members.add(place, session)
            self.turnover += 1
            self.problem = ""
            self._changed.notify_all()
        return True

    async def _follow(self, session: Session) -> pb.Policy:
        """Give a replica that has caught up the policy that came meanwhile."""
        policy = await self._policy.for_kind(self.kind.policy)
        readers = self._policy.reads(self.kind.policy)
        self._objects.need(session, readers)
        await self._objects.synced(readers)
        await session.open_kinds(frozenset(readers))
        await session.switch(policy)
        await session.keep_kinds(frozenset(readers))
        return policy

    async def _retire(self, place: str, keeper: asyncio.Task[None]) -> None:
        """End the session with a replica whose address is gone, once it has answered."""
        member = self.members.at(place)
        if member is not None:
            self._remove(place, member.session)
            if member.unanswered:
                await asyncio.wait(member.unanswered)
        keeper.cancel()

    def _lose(self, place: str, session: Session, reason: str) -> None:
        """Give no more work to a replica until it has caught up again."""
        problem = f"{self.kind.name} at {place}: {reason}"
        if self._remove(place, session):
            self.problem = problem
            log.warning("A replica is lost", service=self.kind.name, problem=problem)
        elif self.members.at(place) is None:
            self.problem = problem
            log.debug("A replica is not reached", service=self.kind.name, problem=problem)

    def _remove(self, place: str, session: Session) -> bool:
        removed = self.members.remove(place, session)
        if removed:
            self.turnover += 1
            self._metrics.session_closed(self.ready)
            self._lost_at = time.monotonic() if not self.ready else self._lost_at
        return removed

    async def _send_deltas(self) -> None:
        """Send many changes at once, so that cycles find them there already; a few take longer.

        A cycle brings a few along at no cost, while a message of their own makes all sides work.
        """
        for tick in itertools.count():
            await asyncio.sleep(self._limits.delta_interval)
            least = MANY_CHANGES if tick % FEW_CHANGES_TICKS else 1
            for member in self.members.all:
                with suppress(SessionLostError):  # whoever listens to the session finds out
                    member.session.send_changes(least)
