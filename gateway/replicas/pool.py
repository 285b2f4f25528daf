"""All replicas of one kind: finds them, keeps a session with each, hands out cycles.

Replicas are found by name: every address that a target's host has is a replica of its own. A
replica that is lost is called again with growing pauses; it takes part in cycles once it has caught
up.
"""

import asyncio
import itertools
import socket
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import structlog

from gateway.calls import CallFailedError
from gateway.replicas.kinds import Kind
from gateway.replicas.metrics import SessionMetrics
from gateway.replicas.session import Session, SessionLostError, SessionRefusedError
from gateway.replicas.states import StateFeed
from moorage.backoff import Backoff
from moorage.models import ObjectKind
from moorage.policy import Kind as PluginKind
from moorage.rpc.admin import address
from moorage.v1 import types_pb2 as pb

log = structlog.get_logger()


SILENT = "does not answer in time"


class PolicySource(Protocol):
    """Who knows the policy; learns what replicas can run."""

    def learn(self, kind: str, plugins: Sequence[pb.Plugin]) -> None:
        """Take over what a kind of replica can run."""

    async def for_kind(self, kind: PluginKind) -> pb.Policy:
        """Return the policy for one kind, once it is known."""

    def reads(self, *kinds: PluginKind) -> Mapping[ObjectKind, Sequence[str]]:
        """Return which further kinds of objects it reads, with the plugins that do."""


class ObjectSource(Protocol):
    """Who follows the further kinds of objects that plugins read."""

    def need(self, who: Hashable, readers: Mapping[ObjectKind, Sequence[str]]) -> None:
        """Take over what someone needs from here on: kinds, with the plugins that read them."""

    async def synced(self, kinds: Collection[ObjectKind]) -> None:
        """Wait until objects of these kinds have been read."""


class PoolLimits(Protocol):
    """The settings that a pool reads."""

    @property
    def session_timeout(self) -> float: ...  # noqa: D102
    @property
    def resolve_interval(self) -> float: ...  # noqa: D102
    @property
    def delta_interval(self) -> float: ...  # noqa: D102


class ReplicaPool:
    """The replicas of one kind."""

    def __init__(
        self,
        kind: Kind,
        targets: Sequence[str],
        *,
        feed: StateFeed,
        policy: PolicySource,
        objects: ObjectSource,
        limits: PoolLimits,
        metrics: SessionMetrics,
        patience: float = float("inf"),
    ) -> None:
        """Look for replicas at *targets* ("host:port").

        Args:
            kind: The kind of service.
            targets: Where replicas are.
            feed: The state that they replicate.
            policy: The policy that they run.
            objects: Follows what their plugins read besides nodes and pods.
            limits: Timeouts and intervals, in seconds.
            metrics: Counts sessions and bytes.
            patience: For how many seconds without any replica a cycle waits for one.
        """
        self.kind = kind
        self.problem = f"no {kind.name} replica has been reached yet"
        self._targets = targets
        self._feed = feed
        self._policy = policy
        self._objects = objects
        self._limits = limits
        self._metrics = metrics
        self._patience = patience
        self._ready: dict[str, Session] = {}
        self._changed = asyncio.Condition()
        self._lost_at = time.monotonic()
        self._turns = itertools.count()

    @property
    def ready(self) -> int:
        """How many replicas take part in cycles."""
        return len(self._ready)

    async def run(self) -> None:
        """Keep sessions with all replicas, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_deltas())
            known: dict[str, asyncio.Task[None]] = {}
            while True:
                addresses = await self._resolve()
                for new in addresses - known.keys():
                    known[new] = group.create_task(self._keep_session(new))
                for gone in known.keys() - addresses:
                    known.pop(gone).cancel()
                await asyncio.sleep(self._limits.resolve_interval)

    async def cycle(self, make: Callable[[], pb.Cycle], deadline: float, **more: object) -> Any:
        """Have a replica run a cycle; a replica that is lost meanwhile is replaced by another.

        Args:
            make: Makes the cycle, without id and timeout; see `Session.run`.
            deadline: When the result is of no use any more, in seconds of `loop.time()`.
            more: Further fields of the request.

        Raises:
            CallFailedError: No replica answers in time.
        """
        asked: tuple[str, Session] | None = None
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    place, session = asked = await self._pick()
                    try:
                        return await session.run(make, deadline, **more)
                    except SessionLostError as error:
                        self._lose(place, str(error))
                        asked = None
        except TimeoutError as error:
            if asked is None:
                raise CallFailedError(f"{self.kind.name} service is not available") from error
            # A replica that is merely slow says so before the deadline: this one hangs.
            place, session = asked
            self._lose(place, SILENT)
            session.break_off()
            raise CallFailedError(f"{self.kind.name} service {SILENT}") from error

    async def _pick(self) -> tuple[str, Session]:
        """Take replicas in turn; wait for one if none is ready and one may be back soon."""
        async with self._changed:
            while not self._ready:
                waited = time.monotonic() - self._lost_at
                if waited >= self._patience:
                    raise CallFailedError(f"{self.kind.name} service is not available")
                with suppress(TimeoutError):
                    async with asyncio.timeout(
                        None if self._patience == float("inf") else self._patience - waited
                    ):
                        await self._changed.wait()
        sessions = list(self._ready.items())
        return sessions[next(self._turns) % len(sessions)]

    async def _resolve(self) -> set[str]:
        loop = asyncio.get_running_loop()
        addresses = set[str]()
        for target in self._targets:
            host, _, port = target.removeprefix("dns:///").rpartition(":")
            try:
                found = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
            except OSError as error:
                self.problem = f"cannot resolve {target}: {error.strerror}"
                continue
            addresses |= {address(str(entry[4][0]), int(entry[4][1])) for entry in found}
        return addresses

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
                self._lose(place, str(error))
            finally:
                self._ready.pop(place, None)  # its address may be gone, and this task with it
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
        await session.synchronize(policy, frozenset(readers))
        welcome()
        async with self._changed:
            self._ready[place] = session
            self.problem = ""
            self._changed.notify_all()
        self._metrics.session_opened(self.ready)
        log.info("A replica takes part", service=self.kind.name, replica=session.replica)
        await session.listen(self._metrics.caught_up)

    def _lose(self, place: str, reason: str) -> None:
        """Give no more cycles to a replica until it has caught up again."""
        self.problem = f"{self.kind.name} at {place}: {reason}"
        if self._ready.pop(place, None) is None:
            log.debug("A replica is not reached", service=self.kind.name, problem=self.problem)
            return
        self._metrics.session_closed(self.ready)
        if not self._ready:
            self._lost_at = time.monotonic()
        log.warning("A replica is lost", service=self.kind.name, problem=self.problem)

    async def _send_deltas(self) -> None:
        """Send changes as they happen, so that cycles find them there already."""
        while True:
            await asyncio.sleep(self._limits.delta_interval)
            for session in list(self._ready.values()):
                with suppress(SessionLostError):  # whoever listens to the session finds out
                    await session.send_changes()
