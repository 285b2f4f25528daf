"""The score half of a cycle: how good the nodes are that can run the pod.

It goes to one replica. If that is worth it, several score a shard of the nodes each, and then one
of them normalises what all plugins said of all nodes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.cycle.merging import (
    ScoredShard,
    add_normalization,
    merge_scores,
)
from gateway.cycle.node_set import Candidates, NodeLookup, Positions
from gateway.cycle.phase import Half, fill_cycle, gathered
from gateway.cycle.request import Subject
from gateway.cycle.sharding import Sharding, split
from gateway.decisions.from_protobuf import score_record
from gateway.decisions.log import ScoreRecord
from gateway.metrics import CycleMetrics
from gateway.policy.policy import PolicyHolder
from gateway.replicas.pool import ReplicaPool
from moorage.v1 import scorer_pb2

TOTALS = np.dtype("<f4")
"""How exactly replicas tell totals."""


class Scored(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What came of a score half.

    Attributes:
        totals: For each node 0..100, in the order of the call; None if no plugin had an opinion.
        record: For the decision.
        scale: The best score that kube-scheduler is told.
    """

    totals: npt.NDArray[np.float64] | None
    record: ScoreRecord
    scale: int

    def scores(self) -> Sequence[int]:
        """Return a score for each node, or none at all: whole numbers, halves rounded upwards."""
        if self.totals is None:
            return ()
        answer: list[int] = (self.totals * (self.scale / 100) + 0.5).astype(np.int64).tolist()
        return answer


class ScoreHalf(Half):
    """Has scorer replicas rank nodes."""

    prepares_again = True

    def __init__(
        self,
        pool: ReplicaPool,
        lookup: NodeLookup,
        sharding: Sharding,
        metrics: CycleMetrics,
        *,
        policy: PolicyHolder,
        top: int,
    ) -> None:
        """Ask for the scores of every plugin for the *top* nodes."""
        super().__init__(pool, lookup, sharding, metrics)
        self._policy = policy
        self._top = top

    async def run(self, subject: Subject) -> Scored:
        """Return how good the subject's nodes are.

        Raises:
            CallFailedError: The scorer service fails, does not answer in time, or answers nonsense.
        """
        count = self.shards(subject)
        scored = self._scattered(subject, count) if count > 1 else self._scored(subject)
        result, found = await scored
        record = score_record(result, found.count, count)
        self.metrics.scored(record)
        totals = self._checked(result.totals, found.count)
        if totals is not None:
            totals = found.spread(totals, 0)
        return Scored(totals=totals, record=record, scale=self._policy.score_scale)

    async def _scored(self, subject: Subject) -> tuple[scorer_pb2.ScoreResult, Candidates]:
        def fill(request: Any, found: Candidates) -> Candidates:
            fill_cycle(request.cycle, subject, found)
            request.top = self._top
            return found

        return await self.ask(subject, len(subject.names), fill)

    async def _scattered(
        self, subject: Subject, count: int
    ) -> tuple[scorer_pb2.ScoreResult, Candidates]:
        """Score in shards, and have one replica normalise what they say."""
        found = self.lookup.find(subject.names, subject.given)
        parts = split(found.positions, count)
        shards = await gathered(self._shard(subject, part) for part in parts)
        raw = merge_scores(shards, len(subject.names))
        if raw:
            scored = np.concatenate([shard.found.positions for shard in shards])
            result, found = await self._normalized(subject, scored, raw)
        else:
            result = scorer_pb2.ScoreResult(generation=shards[0].result.generation)
        add_normalization(result, shards)
        return result, found

    async def raw(self, subject: Subject) -> Sequence[ScoredShard]:
        """Return what plugins say of the subject's nodes, not normalised.

        Raises the same as `run`.
        """
        count = self.shards(subject)
        positions = self.lookup.find(subject.names, subject.given).positions
        if count == 1:
            return [await self._shard(subject, positions)]
        return await gathered(self._shard(subject, part) for part in split(positions, count))

    async def _shard(self, subject: Subject, part: Positions) -> ScoredShard:
        def fill(request: Any, found: Candidates) -> Candidates:
            about = found.among(part)
            fill_cycle(request.cycle, subject, found)
            request.shard = about.bitmap or b"\0"  # nothing at all would mean all nodes
            return about

        result, found = await self.ask(subject, len(part), fill)
        return ScoredShard(result, found, self._raw(result, found.count))

    async def _normalized(
        self,
        subject: Subject,
        scored: Positions,
        raw: Mapping[str, npt.NDArray[np.float64]],
    ) -> tuple[scorer_pb2.ScoreResult, Candidates]:
        def fill(request: Any, found: Candidates) -> Candidates:
            about = found.among(scored)
            positions = about.positions
            fill_cycle(request.cycle, subject, about)
            request.top = self._top
            for plugin, values in raw.items():
                request.raw.add(plugin=plugin, values=values[positions].astype("<f8").tobytes())
            return about

        return await self.ask(subject, len(scored), fill, "normalize")

    def _raw(
        self, result: scorer_pb2.ScoreResult, count: int
    ) -> Mapping[str, npt.NDArray[np.float64]]:
        raw = {each.plugin: np.frombuffer(each.values, "<f8") for each in result.raw}
        if any(len(values) != count or not np.isfinite(values).all() for values in raw.values()):
            raise self.nonsense("raw scores do not match the nodes")
        return raw

    def _checked(self, totals: bytes, count: int) -> npt.NDArray[np.float64] | None:
        """Return the totals, if there are any: whether they are numbers, and in range."""
        if not totals:
            return None
        if len(totals) != 4 * count:
            raise self.nonsense("scores do not match the nodes")
        values = np.frombuffer(totals, TOTALS).astype(np.float64)
        if not (values.min() >= 0 and values.max() <= 100):
            raise self.nonsense("a score is outside 0..100")
        return values
