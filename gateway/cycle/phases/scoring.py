"""The score phase of a cycle: how good the nodes are that can run the pod.

It goes to one replica. If that is worth it, several score a shard of the nodes each, and then one
of them normalises what all plugins answered for all nodes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.calls import CycleRequest
from gateway.calls.node_set import NodeRows, Positions
from gateway.cycle.metrics import CycleMetrics
from gateway.cycle.phases.merging import (
    ShardScores,
    add_normalization,
    merge_scores,
    of_one_version,
)
from gateway.cycle.phases.phase import ReplicaPhase, fill_cycle, gather
from gateway.cycle.phases.row_index import RowIndex
from gateway.cycle.phases.sharding import Sharding, split
from gateway.decisions.cycle import NodeScores, PluginScores
from gateway.decisions.from_protobuf import kept_values, score_record
from gateway.decisions.records import ScoreRecord
from gateway.decisions.rules import tied, whole
from gateway.replicas.pool import ReplicaPool
from gateway.replicas.work import VersionGoneError
from moorage.plugin.cycle_state import KeptValue
from moorage.v1 import scorer_pb2

Scored = tuple[scorer_pb2.ScoreResult, NodeRows, str]
"""A result, the rows that it is about, and the version of the plugins."""

TOTALS = np.dtype("<f4")
"""The precision of totals on the wire."""


class ScorePhaseResult(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The result of a score phase.

    Attributes:
        totals: For each node 0..100, in the order of the request; None if no plugin had an opinion.
        record: For the decision.
        by_row: The same with the opinions that make up the totals; None if no plugin had one, or
            they are not kept.
        cycle_state: What plugins keep for the bind.
    """

    totals: npt.NDArray[np.float64] | None
    record: ScoreRecord
    by_row: NodeScores | None = None
    cycle_state: Mapping[str, KeptValue] = {}

    def scores(self, scale: int) -> Sequence[int]:
        """Return whole numbers from 0 to *scale*, 0.5 rounded up; empty without an opinion.

        The record gets the scale, and how many nodes rounding made equal to the best.
        """
        if self.totals is None or not len(self.totals):
            return ()
        sent = whole(self.totals, scale)
        self.record.scale, self.record.tied = scale, tied(self.totals, sent)
        answer: list[int] = sent.tolist()
        return answer


class ScorePhase(ReplicaPhase):
    """Has scorer replicas rank nodes."""

    prepares_again = True

    def __init__(
        self,
        pool: ReplicaPool,
        index: RowIndex,
        sharding: Sharding,
        metrics: CycleMetrics,
        *,
        top: int,
        all_scores: bool = True,
    ) -> None:
        """Ask for the scores of every plugin for the *top* nodes, or for *all_scores*."""
        super().__init__(pool, index, sharding, metrics)
        self._top = top
        self._all_scores = all_scores

    async def run(self, request: CycleRequest) -> ScorePhaseResult:
        """Return the result for the nodes of the request; see `Phase.run`."""
        (count, version), since = self.shards(request), self.index.state.generation
        scored = await self._score_in_shards(request, count, version) if count > 1 else None
        if scored is None:  # not worth it, or the replicas have different versions of plugins
            count, scored = 1, await self._score(request)
        result, rows, answered = scored
        record = score_record(result, rows.count, count, answered)
        self.metrics.scored(record)
        totals = self._checked_totals(result.totals, rows.count)
        by_row = None
        if totals is not None:
            by_row = self._by_row(result, rows, since)
            totals = rows.to_call_order(totals, 0)
        kept = kept_values(result.cycle_state) if result.cycle_state else {}
        return ScorePhaseResult(totals=totals, record=record, by_row=by_row, cycle_state=kept)

    async def _score(self, request: CycleRequest) -> Scored:
        def fill(message: Any, rows: NodeRows) -> NodeRows:
            fill_cycle(message.cycle, request, rows)
            message.top, message.all_scores = self._top, self._all_scores
            return rows

        return await self.ask(request, len(request.nodes), fill)

    async def _score_in_shards(
        self, request: CycleRequest, count: int, version: str
    ) -> Scored | None:
        """Score in shards; None if no replica with this version of plugins is left."""
        shards = await self._score_parts(request, count, version)
        if not shards:
            return None
        raw = merge_scores(shards, len(request.nodes))
        if raw:
            scored = np.concatenate([shard.rows.positions for shard in shards])
            try:
                result, rows, _ = await self._normalize(request, scored, raw, version)
            except VersionGoneError:
                return None
        else:
            result = scorer_pb2.ScoreResult(generation=shards[0].result.generation)
            rows = self.index.find(request.nodes)
        add_normalization(result, shards)
        return result, rows, version

    async def _score_parts(
        self, request: CycleRequest, count: int, version: str
    ) -> Sequence[ShardScores]:
        """Return the raw scores of all nodes, by shard; none if the version is gone."""
        parts = split(self.index.find(request.nodes).positions, count)
        try:
            shards = await gather(self._score_shard(request, part, version) for part in parts)
        except VersionGoneError:
            return ()
        return shards if of_one_version(shards) else ()

    async def _score_shard(
        self, request: CycleRequest, part: Positions, version: str = ""
    ) -> ShardScores:
        def fill(message: Any, rows: NodeRows) -> NodeRows:
            shard = rows.subset(part)
            fill_cycle(message.cycle, request, rows)
            message.shard = shard.bitmap or b"\0"  # an empty bitmap would mean all nodes
            return shard

        result, rows, answered = await self.ask(request, len(part), fill, version=version)
        return ShardScores(result, rows, self._checked_raw(result, rows.count), answered)

    async def _normalize(
        self,
        request: CycleRequest,
        scored: Positions,
        raw: Mapping[str, npt.NDArray[np.float64]],
        version: str,
    ) -> Scored:
        def fill(message: Any, rows: NodeRows) -> NodeRows:
            normalized = rows.subset(scored)
            positions = normalized.positions
            fill_cycle(message.cycle, request, normalized)
            message.top, message.all_scores = self._top, self._all_scores
            for plugin, values in raw.items():
                message.raw.add(plugin=plugin, values=values[positions].astype("<f8").tobytes())
            return normalized

        return await self.ask(request, len(scored), fill, "normalize", version)

    def _by_row(
        self, result: scorer_pb2.ScoreResult, rows: NodeRows, since: int
    ) -> NodeScores | None:
        if not self._all_scores:
            return None
        plugins = plugin_scores(result)
        if any(not len(each.raw) == len(each.normalized) == rows.count for each in plugins):
            raise self.invalid("the plugins' scores do not match the nodes")
        totals = np.frombuffer(result.totals, TOTALS)
        # A replica reports the generation it was sent; not all changes are sent to replicas.
        generation = max(result.generation, since)
        return NodeScores(generation=generation, bitmap=rows.bitmap, totals=totals, plugins=plugins)

    def _checked_raw(
        self, result: scorer_pb2.ScoreResult, count: int
    ) -> Mapping[str, npt.NDArray[np.float64]]:
        raw = {each.plugin: np.frombuffer(each.values, "<f8") for each in result.raw}
        if any(len(values) != count or not np.isfinite(values).all() for values in raw.values()):
            raise self.invalid("raw scores do not match the nodes")
        return raw

    def _checked_totals(self, totals: bytes, count: int) -> npt.NDArray[np.float64] | None:
        if not totals:
            return None
        if len(totals) != 4 * count:
            raise self.invalid("scores do not match the nodes")
        values = np.frombuffer(totals, TOTALS).astype(np.float64)
        if not (values.min() >= 0 and values.max() <= 100):
            raise self.invalid("a score is outside 0..100")
        return values


def plugin_scores(result: scorer_pb2.ScoreResult) -> list[PluginScores]:
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
