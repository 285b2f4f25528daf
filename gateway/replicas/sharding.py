"""Into how many shards the nodes of a cycle are split, and the answers about shards as one.

A second replica costs one more message. For scores, normalising costs another one, before which
the replica prepares again. So a cycle is scattered only if its plugins need enough time for nodes.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gateway.cycle.answers import PhaseScores, PhaseVerdicts
from gateway.cycle.decision import FilterRecord, PluginRecord
from gateway.cycle.nodes import NodeRows
from gateway.settings import GatewaySettings
from moorage.execution import PluginRejection
from moorage.plugin.cycle_state import join_kept

DECAY = 0.9
"""The weight of a cycle relative to the next one."""

Raw = Mapping[str, npt.NDArray[np.float64]]
"""Raw scores by plugin."""


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


def join_verdicts(shards: Sequence[PhaseVerdicts]) -> PhaseVerdicts:
    """Return the verdicts of all shards as one."""
    numbers: dict[PluginRejection, int] = {}
    codes_of_each = []
    for shard in shards:
        known = [numbers.setdefault(each, len(numbers) + 1) for each in shard.reasons]
        codes_of_each.append(np.array([0, *known], np.uint16)[shard.codes])
    order = np.argsort(np.concatenate([shard.rows.rows for shard in shards]))
    by_position = np.max([shard.rows.by_position for shard in shards], axis=0)
    capacity = max(len(shard.rows.mask) for shard in shards) - 1
    rows = NodeRows.at(by_position, capacity, shards[0].rows.given)
    records = [shard.record for shard in shards]
    joined = PhaseVerdicts(
        bitmap=rows.bitmap,
        codes=np.concatenate(codes_of_each)[order],
        reasons=list(numbers),
        rows=rows,
        record=FilterRecord(
            nodes=0,
            feasible=0,
            seconds=max(each.seconds for each in records),
            plugins=join_reports([each.plugins for each in records]),
            claimants=list(dict.fromkeys(name for each in records for name in each.claimants)),
            shards=len(shards),
            version=records[0].version,
        ),
        generation=min(shard.generation for shard in shards),
        kept=join_kept(shard.kept for shard in shards),
    )
    joined.count()
    return joined


def join_raw(shards: Sequence[PhaseScores], names: int) -> Raw:
    """Return the raw scores by position among *names* nodes, NaN where there are none.

    A plugin without an opinion of one shard has none of the others.
    """
    joined = {plugin: np.full(names, np.nan) for plugin in _common(shards)}
    for shard in shards:
        for each in shard.plugins:
            if each.plugin in joined:
                joined[each.plugin][shard.rows.positions] = each.raw
    return joined


def add_shards(scores: PhaseScores, shards: Sequence[PhaseScores]) -> None:
    """Add to normalised scores what plugins reported and kept when they scored the shards."""
    scored = _common(shards)
    record = scores.record
    later = {report.plugin: report for report in record.plugins}
    record.plugins = join_reports([shard.record.plugins for shard in shards])
    for report in record.plugins:
        after = later.get(report.plugin)
        if after is None:
            after = PluginRecord(plugin="", seconds=0.0, skipped=report.plugin not in scored)
        report.skipped = not report.failure and after.skipped
        report.failure = report.failure or after.failure
        report.note = after.note or report.note  # that of who saw all nodes, if there is one
        report.seconds += after.seconds
    record.shards = len(shards)
    record.version = shards[0].record.version
    record.seconds += max(shard.record.seconds for shard in shards)
    # What was kept by who saw all nodes counts.
    scores.kept = join_kept([*(shard.kept for shard in shards), scores.kept])


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


def _common(shards: Sequence[PhaseScores]) -> list[str]:
    """Return the plugins with an opinion of every shard, in the order in which they ran."""
    names = [[each.plugin for each in shard.plugins] for shard in shards]
    return [plugin for plugin in names[0] if all(plugin in other for other in names)]
