"""All replicas of one kind: finds them, keeps a session with each, knows whose turn it is.

A replica that is lost is called again with growing pauses; it takes part once it has caught up.
"""

import asyncio
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import structlog

from gateway.cluster.cluster import Cluster
from gateway.cycle import CallFailedError
from gateway.policy.policy import PolicyHolder, Share, policy_for, versions_of
from gateway.replicas.crashes import CrashSuspects, Work
from gateway.replicas.dns import Resolver
from gateway.replicas.feed import Kinds, StateFeed
from gateway.replicas.kinds import ReportRetry, ServiceKind
from gateway.replicas.latency import LatencyTracker
from gateway.replicas.metrics import ReplicaMetrics, SessionMetrics
from gateway.replicas.session import Session, SessionRefusedError, WaitUntilIdle, WrongReplicaError
from gateway.settings import GatewaySettings
from moorage.backoff import Backoff
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.stream import StreamLostError
from moorage_host.tls.certificate import Certificate
from moorage_host.tls.security import LOOPBACK, Security

log = structlog.get_logger()

SILENT = "does not answer in time"

REFUSES = "refuses the policy: "


class VersionGoneError(CallFailedError):
    """No replica has the version of plugins that work is for."""


NOT_AVAILABLE = " service is not available"
"""What calls fail with while no replica takes part; a colon follows, and why, if one refuses."""


class Member:
    """A replica that takes part.

    Attributes:
        place: Its address.
        session: The session with it.
        unanswered: Answers that it owes, and what each is about.
    """

    def __init__(self, replicas: "ReplicaSet", place: str, session: Session) -> None:
        self.place = place
        self.session = session
        self.unanswered: dict[asyncio.Future[Any], Work] = {}
        self._replicas = replicas

    def on_end(self, answer: "asyncio.Future[Any]") -> None:
        """Note an answer, or the loss of a replica, even if another replica was faster."""
        error = None if answer.cancelled() else answer.exception()
        if isinstance(error, StreamLostError):  # all that is unanswered was under way then
            self._replicas.mark_lost(self.place, self.session, str(error))
        elif isinstance(error, TimeoutError):
            self._replicas.give_up(self)
        self.unanswered.pop(answer, None)

    def end_once_answered(self) -> None:
        """Have its session end, which another one has replaced, once nothing is unanswered."""
        if not self.unanswered:
            self.session.break_off("another session has taken over")
        for each in self.unanswered:
            each.add_done_callback(lambda _: self.end_once_answered())


class ReplicaSet:
    """The replicas of one kind.

    Attributes:
        kind: The kind of service.
        name: What they are called: as their kind.
        share: What they run of the policy.
        all: The replicas that take part, a new list whenever some come or go.
        by_place: The same by their addresses.
        problem: Why there are none, or what went wrong last.
        refusals: What replicas do instead of taking part, by their addresses: their plugins do not
            start, or they are of another service or version.
        code_epoch: Counts changes of plugin code: a process took part that had not before, or the
            last one with its version of plugins ceased to.
        feed: The state that they replicate.
        metrics: Counts sessions and bytes.
        latency: How soon they answer.
        objects: Follows what else than nodes and pods their plugins read.
        settings: Timeouts and intervals, in seconds.
        crash_suspects: Pods about which replicas crashed.
    """

    def __init__(
        self,
        kind: ServiceKind,
        targets: Sequence[str],
        *,
        feed: StateFeed,
        policy: PolicyHolder,
        cluster: Cluster,
        settings: GatewaySettings,
        families: ReplicaMetrics,
        security: Security = LOOPBACK,
        wait_until_idle: WaitUntilIdle,
        longest_wait: float = math.inf,
        retry: ReportRetry = lambda _, __, ___: None,
        share: Share = "all",
    ) -> None:
        """Look for replicas at *targets* ("host:port").

        Args:
            kind: The kind of service.
            targets: Where replicas are.
            feed: The state that they replicate.
            policy: The policy that they run.
            cluster: Follows nodes and pods, and what else plugins read; no replica gets the state
                before these are read.
            settings: Timeouts and intervals, in seconds.
            families: Counts sessions and bytes.
            security: Secures the connections to them.
            wait_until_idle: Waits until no cycle runs, before work that would delay cycles.
            longest_wait: For how many seconds without any replica cycles wait for one.
            retry: Called when a plugin asks for another attempt on pods that it rejected.
            share: What they run of the policy.
        """
        self.kind, self.share = kind, share
        self.name = kind.name
        self.problem = f"no {self.name} replica has been reached yet"
        self.refusals: dict[str, str] = {}
        self.feed = feed
        self.metrics = SessionMetrics(families, self.name)
        self.latency = LatencyTracker(settings)
        self.code_epoch = 0
        self._processes: dict[str, str] = {}  # what took part last, by address
        self.crash_suspects = CrashSuspects(self.name, asyncio.get_running_loop().time)
        self.all: list[Member] = []
        self.by_place: dict[str, Member] = {}
        self._turns = itertools.count()
        self._resolver = Resolver(targets)
        self._policy = policy
        self._cluster = cluster
        self.objects = cluster.kinds
        self.settings = settings
        self._security = security
        self._wait_until_idle = wait_until_idle
        self._longest_wait = longest_wait
        self._retry = retry
        self._changed = asyncio.Condition()
        self._lost_at = asyncio.get_running_loop().time()
        self._revision = ""
        self._joining = 0
        self._has_joined = False

    @property
    def largest_version_group(self) -> tuple[str, int]:
        """The version of plugins that most replicas without unanswered work have; how many do."""
        idle = Counter(m.session.version for m in self.all if not m.unanswered)
        return max(idle.items(), key=lambda each: (each[1], each[0]), default=("", 0))

    def session(self, place: str) -> Session:
        """Return a further session with the replica at an address, which takes no part yet."""
        return Session(self.kind, self.feed, self.metrics, self._security, place)

    def next(self, version: str = "") -> Member | None:
        """Return whose turn it is: in turn, those without unanswered work first.

        Only of those with a *version* of plugins, if one is asked for.
        """
        members = self.all
        if version:
            members = [each for each in members if each.session.version == version]
        if len(members) < 2:
            return members[0] if members else None
        turn = next(self._turns) % len(members)
        return min(members[turn:] + members[:turn], key=lambda member: len(member.unanswered))

    async def until_next(self, deadline: float, version: str = "") -> Member:
        """Wait for a replica if one may be back soon, and return it.

        Raises:
            CallFailedError: No replica is back soon, or by *deadline*.
            VersionGoneError: None has the *version* of plugins that is asked for.
        """
        while not (member := self.next(version)):
            if version:
                raise VersionGoneError(f"no {self.name} has the plugins of a cycle any more")
            end = min(deadline, self._lost_at + self._longest_wait)
            try:
                async with asyncio.timeout_at(end), self._changed:
                    await self._changed.wait_for(lambda: bool(self.all))
            except TimeoutError as error:
                refused = (each.removeprefix(REFUSES) for each in self.refusals.values())
                why = "".join(f": {each}" for each in itertools.islice(refused, 1))
                message = f"{self.name}{NOT_AVAILABLE}{why}"
                raise CallFailedError(message) from error
        return member

    @property
    def is_filling(self) -> bool:
        """Whether the very first replica is sent the state, or waits for it."""
        return bool(self._joining) and not self._has_joined

    @property
    def why_none(self) -> str:
        """Why no replica takes part: refusals are what has to be mended, the rest may pass."""
        refused = (self._refused(*each) for each in self.refusals.items())
        return next(refused, self.problem)

    def plugin_problems(self) -> Iterator[str]:
        """Yield what fails in plugins of replicas beside cycles: in the background, and at start.

        Where no replica takes part, refusals are in `why_none`.
        """
        if self.all:
            yield from (self._refused(*each) for each in self.refusals.items())
        yield from self.crash_suspects.problems()
        for member in self.all:
            for plugin, problem in member.session.problems.items():
                yield f"plugin {plugin} in {self.name} at {member.place}: {problem}"

    async def run(self) -> None:
        """Keep sessions with all replicas, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.feed.follow(self.settings.delta_interval, self._send_changes))
            known: dict[str, asyncio.Task[None]] = {}
            while True:
                addresses = await self._resolver.addresses()
                self.problem = self._resolver.problem or self.problem
                for new in addresses - known.keys():
                    known[new] = group.create_task(self._keep_session(new))
                for gone in known.keys() - addresses:
                    group.create_task(self._retire(gone, known.pop(gone)))
                await asyncio.sleep(self.settings.resolve_interval)

    def mark_lost(self, place: str, session: Session, reason: str) -> None:
        """Give no more work to a replica until it has caught up again."""
        problem, member = f"{self.name} at {place}: {reason}", self.by_place.get(place)
        if self._remove(place, session) and member is not None:
            work = list(member.unanswered.values())
            self.crash_suspects.lost(place, session.replica, session.version, work)
            self.problem = problem
            log.warning("A replica is lost", service=self.name, problem=problem)
        elif self.by_place.get(place) is None:
            self.problem = problem
            log.debug("A replica is not reached", service=self.name, problem=problem)

    def give_up(self, member: Member) -> None:
        """Break off the session with a replica that hangs."""
        self.mark_lost(member.place, member.session, SILENT)
        member.session.break_off(SILENT)

    def begin_again(self, policy: PolicyHolder) -> None:
        """Have all replicas take another policy in new sessions, so that none waits for them."""
        resolved = policy.resolved
        assert resolved is not None  # noqa: S101 - it has become active
        former, new = self._revision, policy_for(resolved, self.kind.policy, self.share).revision
        self._revision = new
        if former not in ("", new):
            for member in self.all:
                member.session.break_off("the policy has changed")

    def _send_changes(self) -> None:
        for member in self.all:
            with suppress(StreamLostError):  # who keeps the session finds out
                member.session.send_changes()

    async def _keep_session(self, place: str) -> None:
        """Keep a session with a replica.

        When this process's certificate is renewed, another one begins beside it and takes over.
        """
        # A process that has ended is back in a second, and the pod that it worked on waits for it.
        backoff = Backoff(0.1, 5.0, factor=1.3)
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
        session = self.session(place)
        try:
            await self._serve(session, place, joined)
        except SessionRefusedError as error:
            self.refusals[place] = f"{REFUSES}{error}"
            self.problem = self._refused(place, self.refusals[place])
            log.warning("The policy is refused", service=self.name, error=str(error))
        except WrongReplicaError as error:
            self.refusals[place] = str(error)
            self.problem = self._refused(place, str(error))
            log.warning("A replica takes no part", service=self.name, problem=self.problem)
        except StreamLostError as error:
            self.refusals.pop(place, None)
            self.mark_lost(place, session, str(error))
        finally:
            self._remove(place, session)
            self._policy.forget(self.kind.policy, session)
            self.objects.need(session, {})
            await session.close()

    async def _serve(self, session: Session, place: str, joined: asyncio.Event) -> None:
        before = await session.greet(self.settings.session_timeout)
        self.crash_suspects.found(place, session.replica, before)
        self._policy.versions.note(session.version, versions_of(session.plugins))
        if self.share != "shadows":  # these run what the policy means for the others
            self._policy.learn(self.kind.policy, session.plugins, session)
        policy, kinds = await self._active(session, place)
        await self._send_everything(session, place, policy, kinds)
        former = self.by_place.get(place)
        while not await self._take_part(place, session, policy):
            policy, kinds = await self._active(session, place)
            session.open_kinds(kinds)
            await session.switch(policy)
            session.keep_kinds(kinds)
        joined.set()
        if former is not None:
            former.end_once_answered()
        self.metrics.session_opened(len(self.all))
        log.info("A replica takes part", service=self.name, replica=session.replica)
        await session.wait(self._retry)

    async def _active(self, session: Session, place: str) -> tuple[pb.Policy, Kinds]:
        """Return the active policy, and the kinds that its plugins read once these are there."""
        policy = await self._policy.for_kind(self.kind.policy, self.share)
        readers = self._policy.reads(self.kind.policy)
        self.objects.need(session, readers)
        if readers:
            self.problem = f"{self.name} at {place} waits for objects that its plugins read"
            await self.objects.synced(readers)
        return policy, frozenset(readers)

    async def _send_everything(
        self, session: Session, place: str, policy: pb.Policy, kinds: Kinds
    ) -> None:
        self._joining += 1
        try:
            self.problem = f"{self.name} at {place} waits for nodes and pods"
            await self._cluster.until_synced()
            self.problem = f"{self.name} at {place} is sent the state of the cluster"
            await session.synchronize(policy, kinds, self._wait_until_idle)
        finally:
            self._joining -= 1
            self._has_joined = True

    async def _take_part(self, place: str, session: Session, policy: pb.Policy) -> bool:
        """Let a replica take part unless it has another policy than the active one."""
        async with self._changed:
            active = await self._policy.for_kind(self.kind.policy, self.share)
            if active.revision != policy.revision:
                return False
            self.refusals.pop(place, None)
            self.by_place[place] = Member(self, place, session)
            self.all = list(self.by_place.values())
            self.code_epoch += self._processes.get(place) != session.replica
            self._processes[place] = session.replica
            self.problem = ""
            self._changed.notify_all()
        return True

    def _refused(self, place: str, why: str) -> str:
        return f"{self.name} at {place} {why}"

    async def _retire(self, place: str, keeper: asyncio.Task[None]) -> None:
        """End the session with a replica whose address is gone, once it has answered."""
        self.refusals.pop(place, None)
        self._processes.pop(place, None)
        self.crash_suspects.gone(place)
        member = self.by_place.get(place)
        if member is not None:
            self._remove(place, member.session)
            if member.unanswered:
                await asyncio.wait(member.unanswered)
        keeper.cancel()

    def _remove(self, place: str, session: Session) -> bool:
        """Give a replica no more work; return whether it took part with this session."""
        member = self.by_place.get(place)
        if member is None or member.session is not session:
            return False
        del self.by_place[place]
        self.all = list(self.by_place.values())
        versions = {each.session.version for each in self.all}
        self.code_epoch += bool(versions) and session.version not in versions
        self.metrics.session_closed(len(self.all))
        if not self.all:
            self._lost_at = asyncio.get_running_loop().time()
        return True
