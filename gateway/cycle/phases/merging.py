"""Merges the results of the shards of one cycle."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from google.protobuf.duration_pb2 import Duration

from gateway.calls.node_set import NodeRows
from gateway.decisions.verdicts import NodeVerdicts
from moorage.v1 import filter_pb2, scorer_pb2
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.convert import from_duration, to_duration

Codes = npt.NDArray[np.uint16]
ReasonKey = tuple[str, str, bool]
Result = filter_pb2.FilterResult | scorer_pb2.ScoreResult


@dataclass(frozen=True, slots=True)
class ShardVerdicts:
    """The verdicts of a filter replica on some nodes.

    Attributes:
        result: The replica's message, with the reasons and the plugins' reports.
        rows: The nodes.
        codes: For each row 0, or the number of the result's reason, from 1 on.
        counts: How many nodes have each code.
        version: That of the replica's plugins.
    """

    result: filter_pb2.FilterResult
    rows: NodeRows
    codes: Codes
    counts: Sequence[int]
    version: str = ""

    @property
    def by_row(self) -> NodeVerdicts:
        """The verdicts alone."""
        return NodeVerdicts(bitmap=self.rows.bitmap, codes=self.codes, reasons=self.result.reasons)


@dataclass(frozen=True, slots=True)
class ShardScores:
    """The raw scores of each plugin with an opinion for some nodes."""

    result: scorer_pb2.ScoreResult
    rows: NodeRows
    raw: Mapping[str, npt.NDArray[np.float64]]
    version: str = ""


def of_one_version(shards: Iterable[ShardVerdicts | ShardScores]) -> bool:
    """Whether all replicas that answered run the same plugins."""
    return len({shard.version for shard in shards}) == 1


def agree(results: Sequence[Result]) -> bool:
    """Whether no plugin failed in one shard and worked in another."""
    failed = {p.plugin for result in results for p in result.plugins if p.failure}
    worked = {p.plugin for result in results for p in result.plugins if not p.failure}
    return failed.isdisjoint(worked)


def merge_verdicts(shards: Sequence[ShardVerdicts]) -> ShardVerdicts:
    """Return the shards as one."""
    reasons: dict[ReasonKey, int] = {}
    codes_of_each = [translated(shard, reasons) for shard in shards]
    rows = np.concatenate([shard.rows.rows for shard in shards])
    codes = np.concatenate(codes_of_each)[np.argsort(rows)]
    by_position = np.max([shard.rows.by_position for shard in shards], axis=0)
    capacity = max(len(shard.rows.mask) for shard in shards) - 1
    merged = filter_pb2.FilterResult(
        generation=min(shard.result.generation for shard in shards),
        reasons=to_messages(reasons),
        plugins=merge_reports([shard.result for shard in shards]),
        duration=_longest(shard.result.duration for shard in shards),
        claimants=dict.fromkeys(name for shard in shards for name in shard.result.claimants),
        cycle_state=[value for shard in shards for value in shard.result.cycle_state],
    )
    counts = np.bincount(codes, minlength=len(reasons) + 1).tolist()
    return ShardVerdicts(
        merged, NodeRows.at(by_position, capacity), codes, counts, shards[0].version
    )


def translated(shard: ShardVerdicts, reasons: dict[ReasonKey, int]) -> Codes:
    """Return the codes by the numbers of *reasons*, which gains the shard's reasons."""
    keys = [(r.plugin, r.text, r.unresolvable) for r in shard.result.reasons]
    table = [0, *(reasons.setdefault(key, len(reasons) + 1) for key in keys)]
    return np.array(table, np.uint16)[shard.codes]


def to_messages(reasons: Iterable[ReasonKey]) -> list[filter_pb2.Reason]:
    """Return reasons as messages, in order."""
    return [filter_pb2.Reason(plugin=p, text=t, unresolvable=u) for p, t, u in reasons]


def merge_scores(
    shards: Sequence[ShardScores], names: int
) -> Mapping[str, npt.NDArray[np.float64]]:
    """Return the raw scores by position among *names* nodes, NaN where there are none.

    A plugin without an opinion of one shard has none of the others.
    """
    plugins = [p for p in shards[0].raw if all(p in shard.raw for shard in shards)]
    merged = {plugin: np.full(names, np.nan) for plugin in plugins}
    for shard in shards:
        for plugin, scores in merged.items():
            scores[shard.rows.positions] = shard.raw[plugin]
    return merged


def merge_reports(results: Sequence[Result]) -> list[pb.PluginReport]:
    """Merge the reports of each plugin; the shards ran side by side."""
    return [_merged_report(reports) for reports in _by_plugin(results).values()]


def add_normalization(result: scorer_pb2.ScoreResult, shards: Sequence[ShardScores]) -> None:
    """Add the shards' reports and durations to the result of the normalisation."""
    scored = {p for p in shards[0].raw if all(p in shard.raw for shard in shards)}
    later = {report.plugin: report for report in result.plugins}
    reports = merge_reports([shard.result for shard in shards])
    for report in reports:
        after = later.get(report.plugin, pb.PluginReport(skipped=report.plugin not in scored))
        report.skipped = not report.failure and after.skipped
        report.failure = report.failure or after.failure
        report.note = after.note or report.note  # that of who saw all nodes, if there is one
        report.duration.CopyFrom(_sum(report.duration, after.duration))
    del result.plugins[:]
    result.plugins.extend(reports)
    later_values = list(result.cycle_state)  # those of who saw all nodes count
    del result.cycle_state[:]
    for shard in shards:
        result.cycle_state.extend(shard.result.cycle_state)
    result.cycle_state.extend(later_values)
    longest = _longest(shard.result.duration for shard in shards)
    result.duration.CopyFrom(_sum(result.duration, longest))


def _by_plugin(results: Sequence[Result]) -> Mapping[str, list[pb.PluginReport]]:
    """Return the reports in the order in which plugins ran: one shard may be done before others."""
    most = max(results, key=lambda result: len(result.plugins))
    reports: dict[str, list[pb.PluginReport]] = {each.plugin: [] for each in most.plugins}
    for result in results:
        for report in result.plugins:
            reports.setdefault(report.plugin, []).append(report)
    return reports


def _merged_report(reports: Sequence[pb.PluginReport]) -> pb.PluginReport:
    return pb.PluginReport(
        plugin=reports[0].plugin,
        duration=_longest(report.duration for report in reports),
        failure=next((report.failure for report in reports if report.failure), ""),
        skipped=all(report.skipped for report in reports),
        note=next((report.note for report in reports if report.note), ""),
    )


def _longest(durations: Iterable[Duration]) -> Duration:
    return to_duration(max(from_duration(duration) for duration in durations))


def _sum(one: Duration, other: Duration) -> Duration:
    return to_duration(from_duration(one) + from_duration(other))
