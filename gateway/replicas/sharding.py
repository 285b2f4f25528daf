"""Into how many shards the nodes of a cycle are split, and how what plugins report is joined.

A second replica costs one more message. For scores, normalising costs another one, before which
the replica prepares again. So a cycle is scattered only if its plugins need enough time for nodes.
"""

import asyncio
from collections.abc import Coroutine, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from gateway.cycle.decision import PluginRecord
from gateway.settings import GatewaySettings
from moorage.plugin.cycle_state import KeptValue
from moorage.v1 import types_pb2 as pb

T = TypeVar("T")

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
        most = min(replicas, nodes // self._min_nodes)
        if self._min_time:
            seen = self._seen.get(kind, _NOTHING)
            expected = nodes * seen.node_seconds / max(seen.nodes, 1)
            cost = self._min_time + seen.again / max(seen.cycles, 1)
            most = min(most, int(expected / cost))
        return max(most, 1)


class _Seen(NamedTuple):
    """Sums over all cycles, in which older ones count less."""

    cycles: float
    nodes: float
    node_seconds: float
    again: float


_NOTHING = _Seen(0, 0, 0, 0)


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results, in order; the first failure cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]


def read_reports(reports: Iterable[pb.PluginReport]) -> list[PluginRecord]:
    """Return what plugins did, without what they rejected."""
    read = []
    for report in reports:
        duration = report.duration
        read.append(
            PluginRecord(
                plugin=report.plugin,
                seconds=duration.seconds + duration.nanos / 1e9,
                skipped=report.skipped,
                failure=report.failure,
                note=report.note,
            )
        )
    return read


def read_kept(values: Iterable[pb.CycleValue]) -> dict[str, KeptValue]:
    """Return by key what plugins keep for the bind; of several values the last one counts."""
    found: dict[str, KeptValue] = {}
    for value in values:
        kept = found.setdefault(value.key, KeptValue())
        kept.json = value.json or kept.json
        kept.by_node.update(value.by_node)
    return found


def join_kept(parts: Iterable[Mapping[str, KeptValue]]) -> dict[str, KeptValue]:
    """Return what shards kept as one; of several values the last one counts."""
    found: dict[str, KeptValue] = {}
    for values in parts:
        for key, value in values.items():
            kept = found.setdefault(key, KeptValue())
            kept.json = value.json or kept.json
            kept.by_node.update(value.by_node)
    return found


def agree(shards: Sequence[Sequence[PluginRecord]]) -> bool:
    """Whether no plugin failed in one shard and worked in another."""
    failed = {each.plugin for shard in shards for each in shard if each.failure}
    worked = {each.plugin for shard in shards for each in shard if not each.failure}
    return failed.isdisjoint(worked)


def join_reports(shards: Sequence[Sequence[PluginRecord]]) -> list[PluginRecord]:
    """Return one report for each plugin; the shards ran side by side.

    The order is that in which plugins ran: one shard may be done before others.
    """
    most = max(shards, key=len)
    by_plugin: dict[str, list[PluginRecord]] = {each.plugin: [] for each in most}
    for shard in shards:
        for each in shard:
            by_plugin.setdefault(each.plugin, []).append(each)
    return [
        PluginRecord(
            plugin=plugin,
            seconds=max(each.seconds for each in reports),
            failure=next((each.failure for each in reports if each.failure), ""),
            skipped=all(each.skipped for each in reports),
            note=next((each.note for each in reports if each.note), ""),
        )
        for plugin, reports in by_plugin.items()
    ]
