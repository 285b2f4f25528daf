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
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress

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


def _for_ever() -> float:
    return math.inf


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


class TermLoop:
    """Begins a term whenever one is needed, and fences binders that come later."""

    def __init__(
        self,
        *,
        term: Term,
        barriers: Barriers,
        recovery: StateRecovery,
        between_cycles: Callable[[], AbstractAsyncContextManager[None]],
        metrics: TermMetrics,
        interval: float,
    ) -> None:
        """Look for new binders every *interval* seconds."""
        self._term = term
        self._barriers = barriers
        self._recovery = recovery
        self._between_cycles = between_cycles
        self._metrics = metrics
        self._interval = interval

    async def run(
        self,
        epoch: int = 0,
        valid_until: Callable[[], float] = _for_ever,
        keep: Callable[[int], Awaitable[None]] | None = None,
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
            while (highest := await self.begin(epoch, valid_until)) != epoch:
                if keep is not None:
                    await keep(highest)
                epoch = highest
            await self._until_ended()
            await self._term.wanted.wait()

    async def begin(self, epoch: int, valid_until: Callable[[], float] = _for_ever) -> int:
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

    async def _until_ended(self) -> None:
        while not self._term.ended.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._term.ended.wait()
            if not self._term.ended.is_set():
                await self.fence_others()


class Leadership:
    """Facade over term, barriers and election.

    Attributes:
        holder: The name of this process at the binders and in the Lease.
        term: The current term, or the absence of one.
        barriers: At the binders.
        election: By the Lease, if there is one.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        client: KubeClient,
        cluster: Cluster,
        between_cycles: Callable[[], AbstractAsyncContextManager[None]],
        resolve: Callable[[BindCall], None],
        registry: CollectorRegistry,
        security: Security,
    ) -> None:
        """Begin terms between two cycles; *resolve* as in `StateRecovery`."""
        self.holder = f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}"  # another one next time
        self.term = Term()
        self.barriers = Barriers(
            (settings.binder,),
            self.holder,
            timeout=settings.barrier_timeout or settings.http_timeout + 1,
            security=security,
        )
        terms = TermLoop(
            term=self.term,
            barriers=self.barriers,
            recovery=StateRecovery(client, cluster, resolve),
            between_cycles=between_cycles,
            metrics=TermMetrics(registry, self.term),
            interval=settings.resolve_interval,
        )
        self.election: Election | None = None
        if settings.leader_election == "lease":
            self.election = Election(client, self.term, terms.run, self.holder, settings)
        self._run = self.election.run if self.election else terms.run

    def problem(self) -> str | None:
        """Return why calls should not come here.

        Without an election the end of a term is no reason: the next call begins another one.
        """
        is_over = self.election is None and self.term.epoch > 0
        return None if is_over else self.term.problem or None

    async def run(self) -> None:
        """Begin and end terms, until cancelled."""
        await self._run()
