"""How long work usually takes, and so when to ask another replica as well."""

from collections import deque
from collections.abc import Hashable
from typing import Protocol

from gateway.replicas.work import Answer, Work

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
