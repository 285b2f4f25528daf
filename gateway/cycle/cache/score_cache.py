"""The cache before the score phase: raw scores by node, normalised and weighted here."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gateway.calls import CycleRequest
from gateway.calls.node_set import NodeRows, Rows
from gateway.cluster.state import ClusterState
from gateway.cycle.cache.node_values import NodeValues
from gateway.cycle.cache.phase_cache import PhaseCache
from gateway.cycle.phases.merging import ShardScores, merge_reports
from gateway.cycle.phases.scoring import TOTALS, ScorePhase, ScorePhaseResult
from gateway.decisions.cycle import NodeScores, PluginScores
from gateway.decisions.from_protobuf import plugin_records
from gateway.decisions.records import NodeScoreRecord, PluginRecord, PluginScoreRecord, ScoreRecord
from gateway.policy.dependencies import CachedScore, ScoreDependencies
from gateway.policy.policy import PolicyHolder
from moorage.plugin.normalization import MAX_SCORE, Normalization, Scores
from moorage_host.plugins.ranking import best, compact, weighted_mean
from moorage_host.rpc.convert import from_duration

LARGEST_RAW = np.finfo(np.float64).max / (2 * MAX_SCORE)
"""The largest raw score that can be normalised."""


class _PluginScores(NamedTuple):
    plugin: CachedScore
    raw: Scores
    normalized: Scores

    def record(self, index: int) -> PluginScoreRecord:
        return PluginScoreRecord(
            plugin=self.plugin.plugin,
            raw=self.raw.item(index),
            normalized=self.normalized.item(index),
            weight=self.plugin.weight,
        )

    def by_row(self) -> PluginScores:
        raw, normalized = compact(self.raw, self.normalized)
        return PluginScores(
            plugin=self.plugin.plugin, weight=self.plugin.weight, raw=raw, normalized=normalized
        )


class ScoreEntry:
    """The raw scores of pods with one signature; see `gateway.cycle.cache.phase_cache.Entry`.

    `values` has a line for each plugin; 0 for plugins without an opinion.
    """

    def __init__(self, state: ClusterState, dependencies: ScoreDependencies) -> None:
        self._plugins = dependencies.plugins
        self.values = NodeValues(state, len(self._plugins), np.float64, dependencies.scope)
        self.source = ""
        self.version = ""
        self.has_failed = False
        self.is_usable = True
        self._state = state
        self._skipped: frozenset[str] | None = None

    def learn(self, shards: Sequence[ShardScores], generation: int) -> bool:
        """Add raw scores; not if other plugins skipped than before, or one cannot be normalised."""
        names = frozenset(plugin.plugin for plugin in self._plugins)
        skipped = {names.difference(shard.raw) for shard in shards}
        if self._skipped is None:
            self._skipped = next(iter(skipped))
        self.is_usable = skipped == {self._skipped} and all(map(self._is_in_range, shards))
        if not self.is_usable:
            return False
        for shard in shards:
            rows = shard.rows.rows
            none = np.zeros(len(rows))
            raw = np.array([shard.raw.get(plugin.plugin, none) for plugin in self._plugins])
            self.values.put(rows, raw.reshape(len(self._plugins), len(rows)), generation)
        return True

    def rank(self, nodes: NodeRows, top: int) -> tuple[NodeScores | None, ScoreRecord]:
        """Return the scores of nodes, none of which is stale, and how they came about."""
        rows = nodes.rows
        skipped = self._skipped or frozenset()
        scores = [
            _PluginScores(plugin, raw, plugin.normalization.apply(raw))
            for plugin, raw in zip(self._plugins, self.values.at(rows), strict=True)
            if plugin.plugin not in skipped
        ]
        totals = weighted_mean([(each.plugin.weight, each.normalized) for each in scores])
        plugins = [
            PluginRecord(plugin=plugin.plugin, seconds=0.0, skipped=plugin.plugin in skipped)
            for plugin in self._plugins
        ]
        record = ScoreRecord(nodes=len(rows), seconds=0.0, plugins=plugins, version=self.version)
        if totals is None:
            return None, record
        record.top = [self._node(rows, totals, scores, index) for index in best(totals, top)]
        by_row = NodeScores(
            generation=self._state.generation,
            bitmap=nodes.bitmap,
            totals=totals.astype(TOTALS),  # replicas send totals in single precision
            plugins=[each.by_row() for each in scores],
        )
        return by_row, record

    def _node(
        self, rows: Rows, totals: Scores, scores: Sequence[_PluginScores], index: int
    ) -> NodeScoreRecord:
        return NodeScoreRecord(
            node=self._state.rows.name_at(int(rows[index])) or "",
            total=totals.item(index),
            plugins=[each.record(index) for each in scores],
        )

    def _is_in_range(self, shard: ShardScores) -> bool:
        """Whether a replica would accept the raw scores, and what they become."""
        for plugin in self._plugins:
            raw = shard.raw.get(plugin.plugin)
            if raw is None:
                continue
            most = MAX_SCORE if plugin.normalization is Normalization.NONE else LARGEST_RAW
            if not (raw.min(initial=0) >= 0 and raw.max(initial=0) <= most):
                return False
        return True


class _Fetched:
    def __init__(self, shards: Sequence[ShardScores]) -> None:
        results = [shard.result for shard in shards]
        self.result: ScorePhaseResult | None = None  # raw scores are normalised here
        self.shards = shards
        self.version = shards[0].version
        self.has_cycle_state = any(result.cycle_state for result in results)
        self.rows = [shard.rows for shard in shards]
        self.record = ScoreRecord(
            nodes=sum(rows.count for rows in self.rows),
            seconds=max(from_duration(result.duration) for result in results),
            plugins=plugin_records(merge_reports(results)),
            shards=len(shards),
        )


class ScoreCache(PhaseCache[ScoreEntry, _Fetched, ScorePhaseResult]):
    """Ranks nodes."""

    name = "score"

    def __init__(
        self,
        phase: ScorePhase,
        state: ClusterState,
        policy: PolicyHolder,
        *,
        limit: int,
        top: int,
        verify_share: float = 0.0,
    ) -> None:
        """Note the *top* nodes; see `PhaseCache`."""
        super().__init__(state, policy, limit=limit, verify_share=verify_share)
        self.phase: ScorePhase = phase
        self._top = top

    async def _ask(self, request: CycleRequest) -> ScorePhaseResult:
        return await self.phase.run(request)

    async def _fetch(self, request: CycleRequest) -> _Fetched:
        fetched = _Fetched(await self.phase.raw(request))
        self.phase.metrics.scored(fetched.record)
        return fetched

    def _dependencies(self, profile: str) -> ScoreDependencies | None:
        return self._policy.dependencies.scores.get(profile)

    def _new_entry(self, profile: str) -> ScoreEntry:
        return ScoreEntry(self._state, self._policy.dependencies.scores[profile])

    def _learn(self, entry: ScoreEntry, fetched: _Fetched, generation: int) -> bool:
        return entry.learn(fetched.shards, generation)

    def _answer(self, request: CycleRequest, entry: ScoreEntry, rows: NodeRows) -> ScorePhaseResult:
        del request
        by_row, record = entry.rank(rows, self._top)
        totals = None if by_row is None else by_row.totals.astype(np.float64)
        if totals is not None:
            totals = rows.to_call_order(totals, 0)
        return ScorePhaseResult(totals=totals, record=record, by_row=by_row)

    def _difference(self, cached: ScorePhaseResult, fresh: ScorePhaseResult) -> str:
        if any(plugin.failure for plugin in fresh.record.plugins):
            return ""
        if cached.totals is None or fresh.totals is None:
            one_has_none = (cached.totals is None) is not (fresh.totals is None)
            return "only one result has scores" if one_has_none else ""
        different = np.flatnonzero(~np.isclose(cached.totals, fresh.totals, rtol=1e-6, atol=1e-6))
        if not len(different):
            return ""
        first = int(different[0])
        totals = f"cached {cached.totals[first]:g}, now {fresh.totals[first]:g}"
        return f"{len(different)} totals, the first at position {first}: {totals}"
