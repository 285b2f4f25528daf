"""The score phase of a cycle: how good the nodes are that can run the pod.

It goes to one replica. If that is worth it, several score a shard of the nodes each, and then one
of them normalises what all plugins answered for all nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.cycle import Cycle, NodeSet
from gateway.cycle.decision import NodeScoreRecord, PluginRecord, PluginScoreRecord, ScoreRecord
from gateway.cycle.nodes import NodeRows, Positions
from gateway.cycle.scores import PluginScores, Scores
from gateway.replicas.call import Found, ask
from gateway.replicas.filters import NOTHING, NonsenseError
from gateway.replicas.kinds import Part
from gateway.replicas.metrics import ReplicaMetrics
from gateway.replicas.set import ReplicaSet, VersionGoneError
from gateway.replicas.sharding import (
    Sharding,
    gather,
    join_kept,
    join_reports,
    read_kept,
    read_reports,
)
from gateway.settings import GatewaySettings
from moorage.plugin.cycle_state import KeptValue
from moorage_host.plugins.ranking import best

TOTALS = np.dtype("<f4")
"""The precision of totals on the wire."""

Raw = Mapping[str, npt.NDArray[np.float64]]
"""Raw scores by plugin."""


class Shard(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The raw scores of each plugin with an opinion for some nodes."""

    rows: NodeRows
    raw: Raw
    record: ScoreRecord
    generation: int
    kept: Mapping[str, KeptValue]


class Scorers:
    """Has scorer replicas rank nodes of cycles."""

    def __init__(
        self, replicas: ReplicaSet, settings: GatewaySettings, metrics: ReplicaMetrics
    ) -> None:
        self.replicas = replicas
        self._sharding = Sharding(settings)
        self._metrics = metrics
        self._top = settings.decision_top

    async def ask(self, cycle: Cycle, nodes: NodeSet) -> tuple[Scores, NodeRows]:
        """Return the scores of some nodes for a cycle, and their rows.

        Raises:
            CallFailedError: The service fails, does not answer in time, or answers nonsense.
        """
        replicas = self.replicas
        since, answer = replicas.feed.state.generation, None
        if len(replicas.all) > 1:
            answer = await self._in_shards(cycle, nodes)
        if answer is None:  # not worth it, or the replicas have different versions of plugins
            found = await ask(replicas, cycle, Part(nodes=nodes, size=len(nodes.names)))
            answer = read(*found, replicas.metrics.invalid), found[1]
            if len(replicas.all) > 1:
                self._observe(cycle, found)
        scores, rows = answer
        scores.record.top = top_nodes(scores, self._top, nodes.names, rows.positions)
        # A replica reports the generation it was sent; not all changes are sent to replicas.
        scores.generation = max(scores.generation, since)
        self._metrics.ran("score", scores.record, cycle.leads_to)
        return answer

    async def raw(self, cycle: Cycle, nodes: NodeSet) -> Shard:
        """Return the raw scores of some nodes; a plugin without an opinion has none.

        Raises:
            CallFailedError: As `ask`.
        """
        shard = await self._shard(cycle, nodes, np.arange(len(nodes)), "")
        self._metrics.ran("score", shard.record, cycle.leads_to)
        return shard

    async def _in_shards(self, cycle: Cycle, nodes: NodeSet) -> tuple[Scores, NodeRows] | None:
        """Score in shards; None if that is not worth it, or the version of plugins is gone."""
        version, alike = self.replicas.largest_version_group
        count = self._sharding.count((cycle.profile, cycle.plugin), len(nodes), alike)
        if count < 2 or not (rows := self.replicas.feed.index.find(nodes)).distinct:
            return None
        parts = np.array_split(rows.positions, count)
        try:
            shards = await gather(self._shard(cycle, nodes, part, version) for part in parts)
            if len({shard.record.version for shard in shards}) > 1:
                return None
            raw = join_raw(shards, len(nodes))
            if raw:
                scored = np.concatenate([shard.rows.positions for shard in shards])
                part = Part(
                    nodes=nodes,
                    size=len(scored),
                    positions=scored,
                    stage="normalize",
                    version=version,
                    raw=raw,
                )
                found = await ask(self.replicas, cycle, part)
                scores, rows = read(*found, self.replicas.metrics.invalid), found[1]
            else:
                rows = self.replicas.feed.index.find(nodes)
                scores = Scores(
                    generation=shards[0].generation,
                    bitmap=rows.bitmap,
                    totals=np.zeros(0, TOTALS),
                    plugins=(),
                    record=ScoreRecord(nodes=rows.count, seconds=0.0, version=version),
                )
        except VersionGoneError:
            return None
        add_shards(scores, shards)
        return scores, rows

    async def _shard(self, cycle: Cycle, nodes: NodeSet, positions: Any, version: str) -> Shard:
        part = Part(
            nodes=nodes,
            size=len(positions),
            positions=positions,
            stage="shard",
            version=version,
        )
        found = await ask(self.replicas, cycle, part)
        self._observe(cycle, found)
        result, rows, _ = found
        raw = {each.plugin: np.frombuffer(each.raw, "<f8") for each in result.scores}
        if any(len(one) != rows.count or not np.isfinite(one).all() for one in raw.values()):
            self.replicas.metrics.invalid()
            raise NonsenseError(f"{NONSENSE}: raw scores do not match the nodes")
        return Shard(
            rows=rows,
            raw=raw,
            record=_record(*found),
            generation=result.generation,
            kept=read_kept(result.cycle_state),
        )

    def _observe(self, cycle: Cycle, found: Found) -> None:
        took, whole = found[0].node_duration, found[0].duration
        seconds = took.seconds + took.nanos / 1e9
        again = whole.seconds + whole.nanos / 1e9 - seconds
        self._sharding.observe((cycle.profile, cycle.plugin), found[1].count, seconds, again)


NONSENSE = "scorer service answers nonsense"


def read(result: Any, rows: NodeRows, version: str, invalid: Callable[[], object]) -> Scores:
    """Return what a replica with a version of plugins answered about *rows*.

    Raises:
        NonsenseError: It cannot be right; this is counted by *invalid*.
    """
    totals = np.frombuffer(result.totals, TOTALS)
    plugins: Sequence[PluginScores] = ()
    if len(totals):
        problem = ""
        plugins = read_opinions(result)
        if len(totals) != rows.count:
            problem = "scores do not match the nodes"
        elif not (totals.min() >= 0 and totals.max() <= 100):
            problem = "a score is outside 0..100"
        for each in plugins:
            if not problem and not len(each.raw) == len(each.normalized) == rows.count:
                problem = "the plugins' scores do not match the nodes"
        if problem:
            invalid()
            raise NonsenseError(f"{NONSENSE}: {problem}")
    record = _record(result, rows, version)
    return Scores(
        generation=result.generation,
        bitmap=rows.bitmap,
        totals=totals,
        plugins=plugins,
        record=record,
        kept=read_kept(result.cycle_state) if result.cycle_state else NOTHING,
    )


def _record(result: Any, rows: NodeRows, version: str) -> ScoreRecord:
    return ScoreRecord(
        nodes=rows.count,
        seconds=result.duration.seconds + result.duration.nanos / 1e9,
        plugins=read_reports(result.plugins),
        version=version,
    )


def top_nodes(
    scores: Scores, count: int, names: Sequence[str | None], at: Positions
) -> list[NodeScoreRecord]:
    """Return the best nodes, best first, with what their totals are made of.

    *at* says where in *names* the node of each score is.
    """
    if not len(scores.totals):
        return []
    top = []
    for index in best(scores.totals, count):
        parts = []
        for each in scores.plugins:
            parts.append(  # noqa: PERF401 - in Python 3.11 a comprehension is a call
                PluginScoreRecord(
                    plugin=each.plugin,
                    raw=each.raw.item(index),
                    normalized=each.normalized.item(index),
                    weight=each.weight,
                )
            )
        total = scores.totals.item(index)
        node = names[at.item(index)] or ""
        top.append(NodeScoreRecord(node=node, total=total, plugins=parts))
    return top


def read_opinions(result: Any) -> Sequence[PluginScores]:
    """Return the opinions in a result."""
    single = len(result.totals)  # totals are in single precision
    found = []
    for each in result.scores:
        raw = np.frombuffer(each.raw, TOTALS if len(each.raw) == single else "<f8")
        normalized = np.frombuffer(each.normalized, TOTALS)
        if not each.normalized:
            normalized = raw.astype(TOTALS, copy=False)
        found.append(
            PluginScores(plugin=each.plugin, weight=each.weight, raw=raw, normalized=normalized)
        )
    return found


def join_raw(shards: Sequence[Shard], names: int) -> Raw:
    """Return the raw scores by position among *names* nodes, NaN where there are none.

    A plugin without an opinion of one shard has none of the others.
    """
    plugins = [p for p in shards[0].raw if all(p in shard.raw for shard in shards)]
    joined = {plugin: np.full(names, np.nan) for plugin in plugins}
    for shard in shards:
        for plugin, scores in joined.items():
            scores[shard.rows.positions] = shard.raw[plugin]
    return joined


def add_shards(scores: Scores, shards: Sequence[Shard]) -> None:
    """Add to normalised scores what plugins reported and kept when they scored the shards."""
    scored = {p for p in shards[0].raw if all(p in shard.raw for shard in shards)}
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
