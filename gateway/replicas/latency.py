"""How long work takes of late, and so when to ask another replica as well."""

from collections import deque
from collections.abc import Hashable
from typing import Protocol

from gateway.replicas.work import Answer, Work

REMEMBERED = 128
"""Round trips of each sort of work that are remembered, the newest."""

ENOUGH = 10
"""Round trips that have to be known before they say anything."""

SHARE = 0.25
"""The part of the remaining time that a replica has to itself before they do."""

FEW_NODES = 100
"""Work on fewer nodes takes as long as on so many, so that its fixed costs are not multiplied."""


class HedgeLimits(Protocol):
    """When an answer is late."""

    @property
    def hedge_quantile(self) -> float: ...  # noqa: D102
    @property
    def hedge_factor(self) -> float: ...  # noqa: D102
    @property
    def hedge_floor(self) -> float: ...  # noqa: D102


class Pace:
    """Remembers round trips, by sort of work and relative to the number of nodes."""

    def __init__(self, limits: HedgeLimits) -> None:
        self._limits = limits
        self._recent: dict[Hashable, deque[float]] = {}

    def note(self, work: Work, answer: Answer) -> None:
        """Remember how long an answer took, unless it tells of a failure."""
        if answer.result.status.code:
            return
        recent = self._recent.setdefault(work.sort, deque(maxlen=REMEMBERED))
        recent.append(answer.seconds / max(work.nodes, FEW_NODES))

    def patience(self, work: Work, remaining: float) -> float:
        """Return after how many seconds an answer is late, with *remaining* until the deadline."""
        recent = self._recent.get(work.sort, ())
        if len(recent) < ENOUGH:
            return max(remaining * SHARE, self._limits.hedge_floor)
        index = min(int(self._limits.hedge_quantile * len(recent)), len(recent) - 1)
        usual = sorted(recent)[index] * max(work.nodes, FEW_NODES)
        return max(usual * self._limits.hedge_factor, self._limits.hedge_floor)
