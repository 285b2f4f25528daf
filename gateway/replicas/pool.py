"""All replicas of one kind: finds them, keeps a session with each, sends them work.

A replica that is lost is called again with growing pauses; it takes part once it has caught up. If
one is slow or lost, another gets the same work, and the first answer counts.
"""

import asyncio
from collections.abc import Iterator, Sequence

import structlog

from gateway.calls import CallFailedError
from gateway.decisions.from_protobuf import versions_of
from gateway.decisions.versions import PluginVersions
from gateway.replicas.dns import Resolver
from gateway.replicas.feed import Kinds, StateFeed
from gateway.replicas.hedging import HedgedCall, LatencyTracker
from gateway.replicas.members import Member, Members
from gateway.replicas.metrics import SessionMetrics
from gateway.replicas.service import ServiceKind
from gateway.replicas.session import Session, SessionRefusedError
from gateway.replicas.sources import ClusterSource, ObjectSource, PolicySource, PoolLimits
from gateway.replicas.work import (
    Answer,
    ReportRetry,
    VersionGoneError,
    WaitUntilIdle,
    Work,
    ignore_retry,
)
from moorage.backoff import Backoff
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.stream import StreamLostError
from moorage_host.tls.certificate import Certificate
from moorage_host.tls.security import LOOPBACK, Security

log = structlog.get_logger()

SILENT = "does not answer in time"


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
        kind: ServiceKind,
        targets: Sequence[str],
        *,
        feed: StateFeed,
        policy: PolicySource,
        cluster: ClusterSource,
        objects: ObjectSource,
        limits: PoolLimits,
        metrics: SessionMetrics,
        security: Security = LOOPBACK,
        wait_until_idle: WaitUntilIdle,
        longest_wait: float,
        retry: ReportRetry = ignore_retry,
        versions: PluginVersions,
    ) -> None:
        """Look for replicas at *targets* ("host:port").

        Args:
            kind: The kind of service.
            targets: Where replicas are.
            feed: The state that they replicate.
            policy: The policy that they run.
            cluster: Follows nodes and pods; no replica gets the state before they are read.
            objects: Follows what else their plugins read.
            limits: Timeouts and intervals, in seconds.
            metrics: Counts sessions and bytes.
            security: Secures the connections to them.
            wait_until_idle: Waits until no cycle runs, before work that would delay cycles.
            longest_wait: For how many seconds without any replica cycles wait for one.
            retry: Called when a plugin asks for another attempt on pods that it rejected.
            versions: Keeps which versions of plugins replicas have.
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
        self._security = security
        self._wait_until_idle = wait_until_idle
        self._longest_wait = longest_wait
        self._retry = retry
        self._versions = versions
        self.members = Members()
        self.turnover = 0
        self._changed = asyncio.Condition()
        self._lost_at = asyncio.get_running_loop().time()
        self._joining = 0
        self._has_joined = False
        self._latency = LatencyTracker(limits)

    @property
    def ready(self) -> int:
        """How many replicas take part in cycles."""
        return len(self.members)

    @property
    def is_filling(self) -> bool:
        """Whether the very first replica is sent the state, or waits for it."""
        return bool(self._joining) and not self._has_joined

    def background_problems(self) -> Iterator[str]:
        """Yield what fails in the background of plugins, for each replica that takes part."""
        for member in self.members.all:
            for plugin, problem in member.session.problems.items():
                yield f"plugin {plugin} in {self.kind.name} at {member.place}: {problem}"

    async def run(self) -> None:
        """Keep sessions with all replicas, until cancelled."""
        async with asyncio.TaskGroup() as group:
            deltas = self.members.send_deltas(self._feed, self._limits.delta_interval)
            group.create_task(deltas)
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

        A further replica gets it whenever one is lost, or has not answered as soon as usual.

        Raises:
            CallFailedError: No replica answers in time.
            VersionGoneError: No replica has the version that the work is for.
        """
        try:
            return await HedgedCall(self, work, self._latency, self._metrics).run()
        except TimeoutError as error:
            raise CallFailedError(f"{self.kind.name} service {SILENT}") from error

    def mark_lost(self, member: Member, reason: str) -> None:
        """Give no more work to a replica until it has caught up again."""
        self._remove_lost(member.place, member.session, reason)

    def give_up(self, member: Member) -> None:
        """Break off the session with a replica that hangs."""
        self.mark_lost(member, SILENT)
        member.session.break_off(SILENT)

    async def next_member(self, deadline: float, version: str = "") -> Member:
        """Return the replica whose turn it is; wait for one if one may be back soon.

        Raises:
            CallFailedError: No replica is back soon, or by *deadline*.
            VersionGoneError: None has the *version* of plugins that is asked for.
        """
        while not (member := self.members.next(version)):
            if version:
                raise VersionGoneError(f"no {self.kind.name} has the plugins of a cycle any more")
            end = min(deadline, self._lost_at + self._longest_wait)
            try:
                async with asyncio.timeout_at(end), self._changed:
                    await self._changed.wait_for(lambda: len(self.members) > 0)
            except TimeoutError as error:
                raise CallFailedError(f"{self.kind.name} service is not available") from error
        return member

    async def _keep_session(self, place: str) -> None:
        """Keep a session with a replica.

        When this process's certificate is renewed, another one begins beside it and takes over.
        """
        backoff = Backoff(0.1, 5.0)
        async with asyncio.TaskGroup() as sessions:
            while True:
                joined, certificate = asyncio.Event(), self._security.certificate
                held = sessions.create_task(self._hold_session(place, joined))
                renewal = sessions.create_task(self._overtaken(joined, certificate))
                await asyncio.wait((held, renewal), return_when=asyncio.FIRST_COMPLETED)
                renewal.cancel()
                if joined.is_set():
                    backoff.reset()
                if held.done():
                    await asyncio.sleep(backoff.next())

    async def _overtaken(self, joined: asyncio.Event, certificate: Certificate | None) -> None:
        """Wait until a session has joined and its certificate is no longer the active one."""
        await joined.wait()
        await self._security.renewed(certificate)

    async def _hold_session(self, place: str, joined: asyncio.Event) -> None:
        """Begin a session, and serve it until it breaks or another one has taken over."""
        session = Session(self.kind, self._feed, self._metrics, self._security, place)
        try:
            await self._serve(session, place, joined)
        except SessionRefusedError as error:
            self.problem = f"{self.kind.name} at {place} refuses the policy: {error}"
            log.warning("The policy is refused", service=self.kind.name, error=str(error))
        except StreamLostError as error:
            self._remove_lost(place, session, str(error))
        finally:
            self._remove(place, session)
            self._policy.forget(self.kind.policy, session)
            self._objects.need(session, {})
            await session.close()

    async def _serve(self, session: Session, place: str, joined: asyncio.Event) -> None:
        await session.greet(self._limits.session_timeout)
        self._versions.note(session.version, versions_of(session.plugins))
        self._policy.learn(self.kind.policy, session.plugins, session)
        policy = await self._policy.for_kind(self.kind.policy)
        readers = self._policy.reads(self.kind.policy)
        self._objects.need(session, readers)
        if readers:
            self.problem = f"{self.kind.name} at {place} waits for objects that its plugins read"
            await self._objects.synced(readers)
        await self._send_everything(session, place, policy, frozenset(readers))
        former = self.members.at(place)
        while not await self._take_part(place, session, policy):
            policy = await self._follow(session)
        joined.set()
        if former is not None:
            former.end_once_answered()
        self._metrics.session_opened(self.ready)
        log.info("A replica takes part", service=self.kind.name, replica=session.replica)
        await session.wait(self._retry)

    async def _send_everything(
        self, session: Session, place: str, policy: pb.Policy, kinds: Kinds
    ) -> None:
        self._joining += 1
        try:
            self.problem = f"{self.kind.name} at {place} waits for nodes and pods"
            await self._cluster.until_synced()
            self.problem = f"{self.kind.name} at {place} is sent the state of the cluster"
            await session.synchronize(policy, kinds, self._wait_until_idle)
        finally:
            self._joining -= 1
            self._has_joined = True

    async def _take_part(self, place: str, session: Session, policy: pb.Policy) -> bool:
        """Let a replica take part unless it has another policy than the active one."""
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
        session.open_kinds(frozenset(readers))
        await session.switch(policy)
        session.keep_kinds(frozenset(readers))
        return policy

    async def _retire(self, place: str, keeper: asyncio.Task[None]) -> None:
        """End the session with a replica whose address is gone, once it has answered."""
        member = self.members.at(place)
        if member is not None:
            self._remove(place, member.session)
            await member.answered()
        keeper.cancel()

    def _remove_lost(self, place: str, session: Session, reason: str) -> None:
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
            if not self.ready:
                self._lost_at = asyncio.get_running_loop().time()
        return removed
