"""Asks the replicas of filter or scorer about a phase of a cycle.

The nodes go to one replica, or in shards to several if that is worth it. The two roles differ in
how an answer is read and how shards become one: verdicts are joined; of scores, one replica
normalises what all plugins answered for all nodes.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from gateway.cycle import Cycle, NodeSet
from gateway.cycle.answers import AnswerT, PhaseScores, PhaseVerdicts
from gateway.cycle.decision import PhaseName, ScoreRecord
from gateway.cycle.nodes import Positions
from gateway.replicas.call import ReplicaAnswer, ask
from gateway.replicas.metrics import ReplicaMetrics
from gateway.replicas.reading import SINGLE, NonsenseError, read_scores, read_verdicts
from gateway.replicas.session import Part, Stage
from gateway.replicas.set import ReplicaSet, VersionGoneError
from gateway.replicas.sharding import Sharding, add_shards, agree, join_raw, join_verdicts
from gateway.settings import GatewaySettings
from moorage.execution.overruns import owner_of

T = TypeVar("T")


class ReplicaClient(ABC, Generic[AnswerT]):
    """Asks replicas in one role.

    Attributes:
        phase: The phase of cycles that they run.
        replicas: The replicas.
    """

    phase: ClassVar[PhaseName]
    shard_stage: ClassVar[Stage] = "whole"

    def __init__(
        self, replicas: ReplicaSet, settings: GatewaySettings, metrics: ReplicaMetrics
    ) -> None:
        self.replicas = replicas
        self._sharding = Sharding(settings)
        self._metrics = metrics
        self._top = settings.decision_top

    @staticmethod
    @abstractmethod
    def read(answer: ReplicaAnswer) -> AnswerT:
        """Return what a replica answered; raises NonsenseError."""

    @abstractmethod
    async def join(self, cycle: Cycle, nodes: NodeSet, shards: Sequence[AnswerT]) -> AnswerT | None:
        """Return the answers about shards as one; None if they do not go together.

        Raises:
            VersionGoneError: No replica with their version of plugins is left.
        """

    async def ask(self, cycle: Cycle, nodes: NodeSet, *, only_raw: bool = False) -> AnswerT:
        """Return what plugins say of some nodes for a cycle.

        With *only_raw*, scores are neither normalised nor summed up: the cache does that.

        Raises:
            CallFailedError: The service fails, does not answer in time, or answers nonsense.
        """
        replicas = self.replicas
        since, answer = replicas.feed.state.generation, None
        try:
            if len(replicas.all) > 1 and not only_raw:
                answer = await self._in_shards(cycle, nodes)
            if answer is None:  # not worth it, or the shards do not go together
                part = Part(nodes=nodes, size=len(nodes.names))
                if only_raw and self.shard_stage == "shard":
                    part.stage, part.positions = "shard", np.arange(part.size)
                found = await ask(replicas, cycle, part)
                answer = self.read(found)
                if len(replicas.all) > 1:
                    self._observe(cycle, found)
        except NonsenseError:
            replicas.metrics.invalid()
            raise
        # A replica reports the generation it was sent; not all changes are sent to replicas.
        answer.generation = max(answer.generation, since)
        if isinstance(answer, PhaseScores) and len(answer.totals):
            answer.note_top(self._top, nodes.names, answer.rows.positions)
        self._metrics.ran(self.phase, answer.record, cycle.exemplar_labels)
        return answer

    async def _in_shards(self, cycle: Cycle, nodes: NodeSet) -> AnswerT | None:
        """Ask in shards; None if that is not worth it.

        None, too, if the shards do not go together, or no replica with their version of plugins is
        left.
        """
        version, alike = self.replicas.largest_version_group
        count = self._sharding.count((cycle.profile, cycle.plugin), len(nodes), alike)
        if count < 2 or owner_of(cycle.pod) in self.replicas.crash_suspects.pods:
            return None  # the pod may crash them all
        if not (rows := self.replicas.feed.index.find(nodes)).distinct:
            return None
        parts = np.array_split(rows.positions, count)
        try:
            shards = await _gather(self._shard(cycle, nodes, part, version) for part in parts)
            if len({shard.record.version for shard in shards}) > 1:
                return None
            return await self.join(cycle, nodes, shards)
        except VersionGoneError:
            return None

    async def _shard(
        self, cycle: Cycle, nodes: NodeSet, positions: Positions, version: str
    ) -> AnswerT:
        part = Part(
            nodes=nodes,
            size=len(positions),
            positions=positions,
            stage=self.shard_stage,
            version=version,
        )
        found = await ask(self.replicas, cycle, part)
        self._observe(cycle, found)
        return self.read(found)

    def _observe(self, cycle: Cycle, found: ReplicaAnswer) -> None:
        """Note how long plugins needed for the nodes, and what scattering costs once more."""
        took, whole = found.result.node_duration, found.result.duration
        seconds = took.seconds + took.nanos / 1e9
        again = whole.seconds + whole.nanos / 1e9 - seconds if self.phase == "score" else 0.0
        self._sharding.observe((cycle.profile, cycle.plugin), found.rows.count, seconds, again)


class FilterClient(ReplicaClient[PhaseVerdicts]):
    """Has filter replicas split nodes into feasible and rejected ones."""

    phase = "filter"
    read = staticmethod(read_verdicts)

    async def join(
        self, cycle: Cycle, nodes: NodeSet, shards: Sequence[PhaseVerdicts]
    ) -> PhaseVerdicts | None:
        """Join verdicts, unless which nodes later plugins saw depends on a failure in one shard."""
        is_group = any(shard.group is not None for shard in shards)
        if is_group or not agree([shard.record.plugins for shard in shards]):
            return None  # a group is placed on all nodes at once
        return join_verdicts(shards)


class ScoreClient(ReplicaClient[PhaseScores]):
    """Has scorer replicas rank nodes."""

    phase = "score"
    shard_stage = "shard"
    read = staticmethod(read_scores)

    async def join(
        self, cycle: Cycle, nodes: NodeSet, shards: Sequence[PhaseScores]
    ) -> PhaseScores | None:
        """Have one replica normalise the raw scores of all shards."""
        version = shards[0].record.version
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
            scores = self.read(await ask(self.replicas, cycle, part))
        else:
            rows = self.replicas.feed.index.find(nodes)
            scores = PhaseScores(
                generation=shards[0].generation,
                bitmap=rows.bitmap,
                totals=np.zeros(0, SINGLE),
                plugins=(),
                rows=rows,
                record=ScoreRecord(nodes=rows.count, seconds=0.0, version=version),
            )
        add_shards(scores, shards)
        return scores


async def _gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results, in order; the first failure cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]
