"""Begins a term: fences earlier ones at the binders, and brings the state up to what they wrote."""

import random
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.leadership.barriers import Barriers
from gateway.leadership.catch_up import CatchUp
from gateway.leadership.term import Term


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


class Beginning:
    """Begins terms of this process."""

    def __init__(
        self,
        *,
        term: Term,
        barriers: Barriers,
        catch_up: CatchUp,
        between_cycles: Callable[[], AbstractAsyncContextManager[None]],
        metrics: TermMetrics,
    ) -> None:
        self._term = term
        self._barriers = barriers
        self._catch_up = catch_up
        self._between_cycles = between_cycles
        self._metrics = metrics

    async def begin(self, epoch: int, valid_until: Callable[[], float]) -> int:
        """Begin a term; return its epoch, or a higher one that may be tried next."""
        start = time.monotonic()
        fenced = await self._barriers.fence(epoch)
        if not fenced.is_held:
            # Two gateways that try at a time must not take the same one again.
            return fenced.highest + random.randint(1, 8)
        missing = await self._catch_up.missing(fenced)
        async with self._between_cycles():
            # Another gateway may have bound to these nodes since.
            self._catch_up.state.release_all()
            self._catch_up.assume(missing)
            self._term.begin(epoch, valid_until=valid_until())
        self._metrics.transitions.inc()
        self._metrics.seconds.observe(time.monotonic() - start)
        return epoch

    async def fence_others(self) -> None:
        """Fence binders that have come since the term began, or were left out then."""
        epoch = self._term.epoch
        fenced = await self._barriers.fence_others(epoch)
        if fenced is None:
            return
        if not fenced.is_held:
            self._term.end(epoch, f"a binder knows epoch {fenced.highest}")
            return
        self._catch_up.assume(await self._catch_up.missing(fenced))
