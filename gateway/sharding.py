"""Into how many shards the nodes of a cycle are split, each for a replica of its own.

A second replica costs a message more, and for scores another one to normalise them. So cycles are
only scattered where the replicas' own time is worth that.
"""

from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.intp]

DECAY = 0.9
"""How much a cycle counts beside the one after it."""


class ShardingLimits(Protocol):
    """When scattering pays."""

    @property
    def min_nodes_per_shard(self) -> int: ...  # noqa: D102
    @property
    def min_shard_time(self) -> float: ...  # noqa: D102


class Sharding:
    """Knows by experience how long replicas need for each node, by sort of work."""

    def __init__(self, limits: ShardingLimits) -> None:
        self._limits = limits
        self._seen: dict[Hashable, tuple[float, float]] = {}

    def note(self, sort: Hashable, nodes: int, seconds: float) -> None:
        """Remember how long a replica needed; so few nodes as are never split say nothing."""
        if nodes < self._limits.min_nodes_per_shard:
            return
        seconds_seen, nodes_seen = self._seen.get(sort, (0.0, 0.0))
        self._seen[sort] = (DECAY * seconds_seen + seconds, DECAY * nodes_seen + nodes)

    def count(self, sort: Hashable, nodes: int, replicas: int) -> int:
        """Return into how many shards to split *nodes* nodes over at most *replicas* replicas."""
        if replicas < 2:
            return 1
        most = min(replicas, nodes // self._limits.min_nodes_per_shard)
        if self._limits.min_shard_time:
            most = min(most, int(self._expected(sort, nodes) / self._limits.min_shard_time))
        return max(most, 1)

    def _expected(self, sort: Hashable, nodes: int) -> float:
        seconds_seen, nodes_seen = self._seen.get(sort, (0.0, 1.0))
        return nodes * seconds_seen / nodes_seen


def split(positions: Positions, count: int) -> Sequence[Positions]:
    """Split positions into so many parts of nearly the same size."""
    return np.array_split(positions, count)
