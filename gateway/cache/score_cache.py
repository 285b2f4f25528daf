"""The score half for pods that come time and again: replicas are asked about what is new.

If all score plugins of a profile are node-local and say how their scores become 0..100, the raw
score of a node holds for all equal pods until the node changes, and the rest is done here. Called
by `gateway.cycle.score_ahead` and `gateway.cycle.runner`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gateway.cache.equal_pods import EqualPods
from gateway.cache.node_values import RowValues, to_ask
from gateway.cache.scope import LocalScore
from gateway.cache.store import Store
from gateway.calls import CallFailedError
from gateway.cluster.state import ClusterState
from gateway.cycle.merging import ScoredShard, merge_reports
from gateway.cycle.node_set import Candidates, Rows
from gateway.cycle.request import Subject
from gateway.cycle.scoring import TOTALS, Scored, ScoreHalf
from gateway.decisions.from_protobuf import note_memory, plugin_records
from gateway.decisions.log import NodeScoreRecord, PluginRecord, PluginScoreRecord, ScoreRecord
from gateway.policy.policy import PolicyHolder
from moorage.plugin.normalization import MAX_SCORE, Normalization, Scores
from moorage_host.plugins.ranking import best, weighted_mean
from moorage_host.rpc.convert import from_duration

LARGEST = np.finfo(np.float64).max / (2 * MAX_SCORE)
"""Raw scores up to here can be normalised."""


class Opinion(NamedTuple):
    """What a plugin says of some nodes."""

    plugin: LocalScore
    raw: Scores
    normalized: Scores

    def record(self, index: int) -> PluginScoreRecord:
        """Note what it says of one node."""
        return PluginScoreRecord(
            plugin=self.plugin.plugin,
            raw=self.raw.item(index),
            normalized=self.normalized.item(index),
            weight=self.plugin.weight,
        )


class KnownScores:
    """What score plugins said about pods with one signature.

    Attributes:
        raw: The raw scores by row, in the order of the plugins; 0 for those without an opinion.
        pod: Whom it was said of last, as NAMESPACE/NAME.
        is_fit: Whether the scores can be normalised here.
        has_failed: Whether a plugin failed when it was asked last.
    """

    def __init__(
        self, state: ClusterState, plugins: Sequence[LocalScore], *, compares_manifests: bool
    ) -> None:
        self.raw = RowValues(state, len(plugins), np.float64, compares_manifests=compares_manifests)
        self.pod = ""
        self.is_fit = True
        self.has_failed = False
        self._state = state
        self._plugins = plugins
        self._skipped: frozenset[str] | None = None

    def learn(self, subject: Subject, shards: Sequence[ScoredShard], generation: int) -> bool:
        """Take over what replicas just said; not if it cannot be put together with the rest."""
        reports = [report for shard in shards for report in shard.result.plugins]
        self.has_failed = any(report.failure for report in reports)
        if self.has_failed:
            return False  # next time it may work
        names = frozenset(plugin.plugin for plugin in self._plugins)
        skipped = {names.difference(shard.raw) for shard in shards}
        if self._skipped is None:
            self._skipped = next(iter(skipped))
        self.is_fit = skipped == {self._skipped} and all(map(self._is_in_range, shards))
        if not self.is_fit:
            return False
        for shard in shards:
            rows = shard.found.rows
            none = np.zeros(len(rows))
            raw = np.array([shard.raw.get(plugin.plugin, none) for plugin in self._plugins])
            self.raw.put(rows, raw.reshape(len(self._plugins), len(rows)), generation)
        self.pod = f"{subject.pod.namespace}/{subject.pod.name}"
        return True

    def rank(self, rows: Rows, top: int) -> tuple[Scores | None, ScoreRecord]:
        """Return the total of each of some rows, none of which is stale, and how it came about."""
        skipped = self._skipped or frozenset()
        opinions = [
            Opinion(plugin, raw, plugin.normalization.apply(raw))
            for plugin, raw in zip(self._plugins, self.raw.at(rows), strict=True)
            if plugin.plugin not in skipped
        ]
        totals = weighted_mean([(each.plugin.weight, each.normalized) for each in opinions])
        reports = [
            PluginRecord(plugin=plugin.plugin, seconds=0.0, skipped=plugin.plugin in skipped)
            for plugin in self._plugins
        ]
        record = ScoreRecord(nodes=len(rows), seconds=0.0, plugins=reports)
        if totals is not None:
            for index in best(totals, top):
                name = self._state.name_at(int(rows[index])) or ""
                scores = [opinion.record(index) for opinion in opinions]
                node = NodeScoreRecord(node=name, total=totals.item(index), plugins=scores)
                record.top.append(node)
        return totals, record

    def _is_in_range(self, shard: ScoredShard) -> bool:
        """Whether a replica would accept the raw scores, or what they become."""
        for plugin in self._plugins:
            raw = shard.raw.get(plugin.plugin)
            if raw is None:
                continue
            most = MAX_SCORE if plugin.normalization is Normalization.NONE else LARGEST
            if not (raw.min(initial=0) >= 0 and raw.max(initial=0) <= most):
                return False
        return True


class RememberedScores:
    """Ranks nodes, and knows what was said of the newest pods that came more than once."""

    def __init__(
        self,
        state: ClusterState,
        policy: PolicyHolder,
        score_half: ScoreHalf,
        equal_pods: EqualPods,
        *,
        limit: int,
        top: int,
    ) -> None:
        """Remember pods with at most *limit* different signatures; note the *top* nodes."""
        self._state = state
        self._policy = policy
        self._half = score_half
        self._metrics = score_half.metrics
        self._store: Store[KnownScores] = Store(policy, score_half.pool, equal_pods, limit)
        self._top = top

    async def run(self, subject: Subject) -> Scored:
        """Return how good the subject's nodes are.

        Raises:
            CallFailedError: The scorer service fails, does not answer in time, or answers nonsense.
        """
        known = self._known(subject)
        if known is None or not known.is_fit:
            return await self._half.run(subject)
        if known.has_failed:  # replicas would be asked twice, and again in vain
            scored = await self._half.run(subject)
            known.has_failed = any(plugin.failure for plugin in scored.record.plugins)
            return scored
        source, lookup = known.pod, self._half.lookup
        asked = to_ask(subject, known.raw, lookup.find(subject.names, None), self._state)
        said, new = None, list[Candidates]()
        if asked is not None:
            since = self._state.generation
            shards = await self._raw(asked, subject, known)
            if shards is None or not known.learn(subject, shards, since):
                return await self._half.run(subject)
            said, new = self._noted(shards), [shard.found for shard in shards]
        found = lookup.find(subject.names, None)
        if not found.count or len(known.raw.stale(found)):  # none known, or it changed meanwhile
            return await self._half.run(subject)
        totals, record = known.rank(found.rows, self._top)
        remembered = found.count - sum(map(found.common, new))
        note_memory(record, source, remembered, said)
        if remembered:
            self._metrics.remembered_half("score", whole=said is None)
        if totals is not None:
            totals = found.spread(totals.astype(TOTALS).astype(np.float64), 0)
        return Scored(totals=totals, record=record, scale=self._policy.score_scale)

    async def _raw(
        self, asked: Subject, subject: Subject, known: KnownScores
    ) -> Sequence[ScoredShard] | None:
        """Return what replicas say of some nodes; None if it fails, be it for nodes of others."""
        self._half.lookup.find(asked.names, None, is_part=True)
        try:
            return await self._half.raw(asked)
        except CallFailedError:
            if asked is subject:
                raise
            known.has_failed, known.raw.ahead = True, 0
            return None

    def _noted(self, shards: Sequence[ScoredShard]) -> ScoreRecord:
        """Return what replicas did, after counting it."""
        results = [shard.result for shard in shards]
        record = ScoreRecord(
            nodes=sum(shard.found.count for shard in shards),
            seconds=max(from_duration(result.duration) for result in results),
            plugins=plugin_records(merge_reports(results)),
            shards=len(shards),
        )
        self._metrics.scored(record)
        return record

    def _known(self, subject: Subject) -> KnownScores | None:
        dependencies, profile = self._policy.dependencies, subject.pod.spec.scheduler_name
        plugins = dependencies.local_scores.get(profile)
        if plugins is None:
            return None
        signature = dependencies.score_signatures[profile]
        compares = profile in dependencies.comparing_scores
        return self._store.known(
            subject,
            signature,
            lambda: KnownScores(self._state, plugins, compares_manifests=compares),
        )
