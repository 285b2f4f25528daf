"""Into how many shards the nodes of a cycle are split, each for a replica of its own.

A second replica costs a message more; for scores, another one to normalise them, before which that
replica has to prepare again. So cycles are only scattered where plugins need long enough for nodes.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from gateway.cycle.node_set import Positions

DECAY = 0.9
"""How much a cycle counts beside the one after it."""


class ShardingLimits(Protocol):
    """When scattering pays."""

    @property
    def min_nodes_per_shard(self) -> int: ...  # noqa: D102
    @property
    def min_shard_time(self) -> float: ...  # noqa: D102


class Sharding:
    """Knows by experience how long plugins need for each node, by sort of work."""

    def __init__(self, limits: ShardingLimits) -> None:
        self._limits = limits
        self._seen: dict[Hashable, _Seen] = {}

    def note(self, sort: Hashable, nodes: int, node_seconds: float, again: float = 0.0) -> None:
        """Remember how long a replica needed.

        Args:
            sort: The sort of work.
            nodes: For so many nodes; so few as are never split say nothing.
            node_seconds: What plugins needed to filter or score them.
            again: The seconds besides that scattering costs once more.
        """
        if nodes >= self._limits.min_nodes_per_shard:
            seen = self._seen.get(sort, _NOTHING)
            new = (1.0, nodes, node_seconds, again)
            self._seen[sort] = _Seen(*(DECAY * a + b for a, b in zip(seen, new, strict=True)))

    def count(self, sort: Hashable, nodes: int, replicas: int) -> int:
        """Return into how many shards to split *nodes* nodes over at most *replicas* replicas."""
        if replicas < 2:
            return 1
        most = min(replicas, nodes // self._limits.min_nodes_per_shard)
        if self._limits.min_shard_time:
            seen = self._seen.get(sort, _NOTHING)
            expected = nodes * seen.node_seconds / max(seen.nodes, 1)
            cost = self._limits.min_shard_time + seen.again / max(seen.cycles, 1)
            most = min(most, int(expected / cost))
        return max(most, 1)


class _Seen(NamedTuple):
    """Sums over all cycles, in which older ones count less."""

    cycles: float
    nodes: float
    node_seconds: float
    again: float


_NOTHING = _Seen(0, 0, 0, 0)


def split(positions: Positions, count: int) -> Sequence[Positions]:
    """Split positions into so many parts of nearly the same size."""
    return np.array_split(positions, count)
