"""Begins and ends the terms of this process; `gateway.leadership.term` says what a term is.

Without an election a term begins when the process starts, and again when a call comes after a
binder has seen the epoch of another gateway. So gateways that are called in turn fence each other,
and stay right. With an election terms begin while this process holds the Lease.
"""

import asyncio
import math
import random
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.cluster.cluster import Cluster
from gateway.cycle import BindCall
from gateway.leadership.barriers import Barriers, StateRecovery
from gateway.leadership.election import Election
from gateway.leadership.term import Term
from gateway.settings import GatewaySettings
from moorage_host.kube import KubeClient
from moorage_host.tls.security import Security

SETTLING = "the binders settle what earlier gateways asked for"


class TermMetrics:
    """Counts terms."""

    def __init__(self, registry: CollectorRegistry, term: Term) -> None:
        active = Gauge(
            "moorage_leader",
            "Whether this gateway may decide: 1 during a term, else 0.",
            registry=registry,
        )
        active.set_function(lambda: float(term.is_active))
        epoch = Gauge(
            "moorage_term_epoch", "The epoch of this gateway's newest term.", registry=registry
        )
        epoch.set_function(lambda: float(term.epoch))
        self.transitions = Counter(
            "moorage_leader_transitions", "Terms that this gateway has begun.", registry=registry
        )
        self.seconds = Histogram(
            "moorage_term_start_seconds",
            "Time from a term's first barrier until it had begun.",
            buckets=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60),
            registry=registry,
        )


class TermStart:
    """Begins terms of this process."""

    def __init__(
        self,
        *,
        term: Term,
        barriers: Barriers,
        recovery: StateRecovery,
        between_cycles: Callable[[], AbstractAsyncContextManager[None]],
        metrics: TermMetrics,
    ) -> None:
        self._term = term
        self._barriers = barriers
        self._recovery = recovery
        self._between_cycles = between_cycles
        self._metrics = metrics

    async def begin(self, epoch: int, valid_until: Callable[[], float]) -> int:
        """Begin a term; return its epoch, or a higher one that may be tried next."""
        start = time.monotonic()
        result = await self._barriers.fence(epoch)
        if not result.is_held:
            # Two gateways that try at a time must not take the same one again.
            return result.highest + random.randint(1, 8)
        missing = await self._recovery.missing(result)
        async with self._between_cycles():
            # Another gateway may have bound to these nodes since.
            self._recovery.state.release_all()
            self._recovery.assume(missing)
            self._term.begin(epoch, valid_until=valid_until())
        self._metrics.transitions.inc()
        self._metrics.seconds.observe(time.monotonic() - start)
        return epoch

    async def fence_others(self) -> None:
        """Fence binders that have come since the term began, or were left out then."""
        epoch = self._term.epoch
        result = await self._barriers.fence_others(epoch)
        if result is None:
            return
        if not result.is_held:
            self._term.end(epoch, f"a binder knows epoch {result.highest}")
            return
        self._recovery.assume(await self._recovery.missing(result))


async def _keep(epoch: int) -> None:
    del epoch


class TermLoop:
    """Begins a term whenever one is needed."""

    def __init__(self, term: Term, start: TermStart, *, interval: float) -> None:
        """Look for new binders every *interval* seconds."""
        self._term = term
        self._start = start
        self._interval = interval

    async def run(
        self,
        epoch: int = 0,
        valid_until: Callable[[], float] = lambda: math.inf,
        keep: Callable[[int], Awaitable[None]] = _keep,
    ) -> None:
        """Begin terms until cancelled.

        Args:
            epoch: The epoch of the first term; one more than the last without.
            valid_until: Returns when, on the monotonic clock, this process may decide no more.
            keep: Stores an epoch that is higher than that of the call, before it is used.
        """
        while True:
            epoch = max(epoch, self._term.epoch + 1)
            self._term.await_beginning(SETTLING)
            while (highest := await self._start.begin(epoch, valid_until)) != epoch:
                await keep(highest)
                epoch = highest
            await self._until_ended()
            await self._term.wanted.wait()

    async def _until_ended(self) -> None:
        while not self._term.ended.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._term.ended.wait()
            if not self._term.ended.is_set():
                await self._start.fence_others()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """What the gateway needs to know of its terms, and what begins and ends them.

    Attributes:
        holder: The name of this process at the binders and in the Lease.
        term: The current term, or the absence of one.
        barriers: At the binders.
        run: Begins and ends terms, until cancelled.
        election: By the Lease, if there is one.
    """

    holder: str
    term: Term
    barriers: Barriers
    run: Callable[[], Coroutine[Any, Any, None]]
    election: Election | None = None


def make_leadership(
    settings: GatewaySettings,
    client: KubeClient,
    cluster: Cluster,
    between_cycles: Callable[[], AbstractAsyncContextManager[None]],
    resolve: Callable[[BindCall], None],
    registry: CollectorRegistry,
    security: Security,
) -> Leadership:
    """Return what begins and ends the terms of this process; *resolve* as in `StateRecovery`."""
    holder = f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}"  # another one after a restart
    term = Term()
    barriers = Barriers(
        (settings.binder,), holder, timeout=settings.barrier_timeout, security=security
    )
    start = TermStart(
        term=term,
        barriers=barriers,
        recovery=StateRecovery(client, cluster, resolve),
        between_cycles=between_cycles,
        metrics=TermMetrics(registry, term),
    )
    terms = TermLoop(term, start, interval=settings.resolve_interval)
    if settings.leader_election == "none":
        return Leadership(holder=holder, term=term, barriers=barriers, run=terms.run)
    election = Election(client, term, terms.run, holder, settings)
    return Leadership(
        holder=holder, term=term, barriers=barriers, run=election.run, election=election
    )
