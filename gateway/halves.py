"""The two halves of a cycle: what is sent to the replicas, and what is made of their answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gateway.calls import (
    ANSWER_SECONDS,
    CallFailedError,
    FilterOutcome,
    GivenNode,
    PreemptCall,
    SchedulingCall,
)
from gateway.decisions import Decision, FilterRecord
from gateway.metrics import CycleMetrics
from gateway.nodes import Candidates, NodeLookup
from gateway.policy import PolicyHolder
from gateway.records import filter_record, score_record
from gateway.replicas.pool import ReplicaPool
from moorage.models import Pod
from moorage.v1 import filter_pb2, scorer_pb2
from moorage.v1 import types_pb2 as pb

UNKNOWN_NODE = "node(s) not known to Moorage yet"

OK = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A pod and the nodes that it is tried on."""

    pod: Pod
    pod_json: bytes
    names: Sequence[str]
    given: Sequence[GivenNode] | None = None
    plugin: str = ""
    excluded_pods: Sequence[str] = ()
    deadline: float

    @classmethod
    def of_call(cls, call: SchedulingCall) -> Self:
        """Try the pod on the nodes of a filter or prioritize call."""
        return cls(
            pod=call.pod,
            pod_json=call.pod_json,
            names=call.node_names,
            given=call.nodes,
            plugin=call.plugin,
            deadline=call.deadline - ANSWER_SECONDS,
        )

    @classmethod
    def of_preemption(cls, call: PreemptCall) -> Self:
        """Try the pod on the candidates without their victims."""
        return cls(
            pod=call.pod,
            pod_json=call.pod_json,
            names=list(call.victims),
            excluded_pods=[uid for victims in call.victims.values() for uid in victims.uids],
            deadline=call.deadline - ANSWER_SECONDS,
        )

    def restricted(self, names: Sequence[str]) -> Self:
        """Try the same pod on some of the nodes, in the same order."""
        if self.given is None or len(names) == len(self.names):
            return replace(self, names=names)
        kept = set(names)
        given = [node for node in self.given if node.manifest.name in kept]
        return replace(self, names=names, given=given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """What came of a filter half: for kube-scheduler, for the decision, and on which state."""

    outcome: FilterOutcome
    record: FilterRecord
    generation: int


class _Half:
    """What both halves share: making a cycle out of a subject at the moment it is sent."""

    def __init__(
        self,
        pool: ReplicaPool,
        lookup: NodeLookup,
        policy: PolicyHolder,
        metrics: CycleMetrics,
    ) -> None:
        self._pool = pool
        self._lookup = lookup
        self._policy = policy
        self._metrics = metrics

    async def _ask(self, subject: Subject, **more: object) -> tuple[Any, Candidates]:
        """Return the result of a cycle that went well, and the nodes that it is about."""
        found: Candidates | None = None

        def make() -> pb.Cycle:
            nonlocal found
            found = self._lookup.find(subject.names, subject.given)
            return pb.Cycle(
                profile=subject.pod.spec.scheduler_name,
                pod=pb.Pod(json=subject.pod_json),
                candidates=found.bitmap,
                plugin=subject.plugin,
                overrides=found.overrides,
                excluded_pods=subject.excluded_pods,
            )

        result = await self._pool.cycle(make, subject.deadline, **more)
        assert found is not None  # noqa: S101 - there is no result of what was not sent
        if result.status.code != OK:
            raise CallFailedError(f"{self._pool.kind.name} service: {result.status.message}")
        return result, found

    def _nonsense(self, what: str) -> CallFailedError:
        self._metrics.nonsense(self._pool.kind.name)
        return CallFailedError(f"{self._pool.kind.name} service answers nonsense: {what}")


class FilterHalf(_Half):
    """Has a filter replica split nodes into feasible and rejected ones."""

    async def run(self, subject: Subject) -> "Filtered":
        """Return the outcome for the subject's nodes.

        Raises:
            CallFailedError: The filter service fails, does not answer in time, or answers nonsense.
        """
        result: filter_pb2.FilterResult
        result, found = await self._ask(subject)
        codes = self._codes(result, len(found.positions))
        record = filter_record(result, codes, len(found.unknown))
        self._metrics.filtered(record)
        outcome = _outcome(subject.names, found, codes, result.reasons)
        return Filtered(outcome=outcome, record=record, generation=result.generation)

    def _codes(self, result: filter_pb2.FilterResult, count: int) -> npt.NDArray[np.uint16]:
        if not result.verdicts:
            return np.zeros(count, np.uint16)
        if len(result.verdicts) != 2 * count:
            raise self._nonsense("verdicts do not match the nodes")
        codes = np.frombuffer(result.verdicts, "<u2")
        if codes.max(initial=0) > len(result.reasons):
            raise self._nonsense("a verdict has no reason")
        return codes


class ScoreHalf(_Half):
    """Has a scorer replica rank nodes."""

    def __init__(
        self,
        pool: ReplicaPool,
        lookup: NodeLookup,
        policy: PolicyHolder,
        metrics: CycleMetrics,
        *,
        top: int,
    ) -> None:
        """Ask for the scores of every plugin for the *top* nodes."""
        super().__init__(pool, lookup, policy, metrics)
        self._top = top

    async def run(self, subject: Subject, decision: Decision) -> Sequence[int]:
        """Return a score for each of the subject's nodes, or none at all; fill in the decision.

        Scores are whole numbers up to the policy's score scale, halves rounded upwards.

        Raises:
            CallFailedError: The scorer service fails, does not answer in time, or answers nonsense.
        """
        totals = await self.totals(subject, decision)
        if totals is None:
            return ()
        scaled = np.floor(totals * self._policy.score_scale / 100 + 0.5)
        answer: list[int] = scaled.astype(np.int64).tolist()
        return answer

    async def totals(self, subject: Subject, decision: Decision) -> npt.NDArray[np.float64] | None:
        """Return a total of 0..100 for each of the subject's nodes, or None; fill in the decision.

        Raises:
            CallFailedError: The scorer service fails, does not answer in time, or answers nonsense.
        """
        result: scorer_pb2.ScoreResult
        result, found = await self._ask(subject, top=self._top)
        decision.score = score_record(result, len(found.positions))
        self._metrics.scored(decision.score)
        if not result.totals:
            return None
        totals = np.zeros(len(subject.names))
        totals[found.positions] = self._checked(result.totals, len(found.positions))
        return totals

    def _checked(self, totals: bytes, count: int) -> npt.NDArray[np.float64]:
        if len(totals) != 4 * count:
            raise self._nonsense("scores do not match the nodes")
        values = np.frombuffer(totals, "<f4").astype(np.float64)
        if not ((values >= 0) & (values <= 100)).all():
            raise self._nonsense("a score is outside 0..100")
        return values


def _outcome(
    names: Sequence[str],
    found: Candidates,
    codes: npt.NDArray[np.uint16],
    reasons: Sequence[filter_pb2.Reason],
) -> FilterOutcome:
    if not codes.any() and not len(found.unknown):
        return FilterOutcome(feasible=names)
    by_position = np.zeros(len(names), np.int64)
    by_position[found.positions] = codes
    by_position[found.unknown] = -1
    failed: dict[str, str] = {}
    unresolvable = dict.fromkeys(_named(names, by_position == -1), UNKNOWN_NODE)
    for code, reason in enumerate(reasons, start=1):
        rejected = dict.fromkeys(_named(names, by_position == code), reason.text)
        (unresolvable if reason.unresolvable else failed).update(rejected)
    return FilterOutcome(
        feasible=_named(names, by_position == 0), failed=failed, unresolvable=unresolvable
    )


def _named(names: Sequence[str], mask: npt.NDArray[np.bool_]) -> list[str]:
    return [names[i] for i in np.flatnonzero(mask).tolist()]
