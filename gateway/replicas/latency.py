"""When a replica is late: what others of its kind have usually needed for such work."""

from collections import deque
from collections.abc import Hashable

from gateway.settings import GatewaySettings

KEPT = 128
"""Round trips that are kept for each kind of work, the newest."""

ENOUGH = 10
"""Round trips that must be known before the hedge delay depends on them."""

SHARE = 0.25
"""Until then, the hedge delay as a part of the remaining time."""

FEW_NODES = 100
"""Work on fewer nodes counts as work on so many: a message has a fixed cost."""


class LatencyTracker:
    """Keeps round trips, by kind of work and relative to the number of nodes.

    Attributes:
        floor: The shortest hedge delay, in seconds.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.floor = settings.hedge_floor
        self._quantile = settings.hedge_quantile
        self._factor = settings.hedge_factor
        self._recent: dict[Hashable, deque[float]] = {}

    def observe(self, key: Hashable, nodes: int, seconds: float) -> None:
        """Record how long an answer took that reports no failure."""
        recent = self._recent.get(key)
        if recent is None:
            recent = self._recent[key] = deque(maxlen=KEPT)
        recent.append(seconds / max(nodes, FEW_NODES))

    def hedge_delay(self, key: Hashable, nodes: int, remaining: float) -> float:
        """Return after how many seconds to ask another replica.

        Args:
            key: The kind of work, which takes similar times for the same number of nodes.
            nodes: The number of nodes.
            remaining: Seconds until the deadline.
        """
        recent = self._recent.get(key, ())
        if len(recent) < ENOUGH:
            return max(remaining * SHARE, self.floor)
        index = min(int(self._quantile * len(recent)), len(recent) - 1)
        usual = sorted(recent)[index] * max(nodes, FEW_NODES)
        return max(usual * self._factor, self.floor)
