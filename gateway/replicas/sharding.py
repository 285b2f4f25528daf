"""Into how many shards the nodes of a cycle are split.

A second replica costs one more message. For scores, normalising costs another one, before which
the replica prepares again. So a cycle is scattered only if its plugins need enough time for nodes.
"""

from collections.abc import Hashable
from typing import NamedTuple

from gateway.settings import GatewaySettings

DECAY = 0.9
"""The weight of a cycle relative to the next one."""


class Sharding:
    """Decides by moving averages of the time that plugins need for a node, by kind of work."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._min_nodes = settings.min_nodes_per_shard
        self._min_time = settings.min_shard_time
        self._seen: dict[Hashable, _Seen] = {}

    def observe(self, kind: Hashable, nodes: int, node_seconds: float, again: float = 0.0) -> None:
        """Take in how long a replica needed.

        Args:
            kind: The kind of work.
            nodes: The number of nodes; ignored below the smallest shard.
            node_seconds: The time that plugins needed for the nodes themselves.
            again: The further seconds that scattering costs once more.
        """
        if nodes >= self._min_nodes:
            seen = self._seen.get(kind, _NOTHING)
            new = (1.0, nodes, node_seconds, again)
            self._seen[kind] = _Seen(*(DECAY * a + b for a, b in zip(seen, new, strict=True)))

    def count(self, kind: Hashable, nodes: int, replicas: int) -> int:
        """Return into how many shards to split *nodes* nodes over at most *replicas* replicas."""
        if replicas < 2:
            return 1
        if not self._min_time:
            return max(min(replicas, nodes), 1)
        seen = self._seen.get(kind, _NOTHING)
        expected = nodes * seen.node_seconds / max(seen.nodes, 1)
        cost = self._min_time + seen.again / max(seen.cycles, 1)
        return max(min(replicas, nodes // self._min_nodes, int(expected / cost)), 1)


class _Seen(NamedTuple):
    """Sums over all cycles, in which older ones count less."""

    cycles: float
    nodes: float
    node_seconds: float
    again: float


_NOTHING = _Seen(0, 0, 0, 0)
