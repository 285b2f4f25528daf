"""Runs scheduling cycles one at a time, in the order of arrival, whoever calls.

A cycle is filter and score. The filter call is answered as soon as the verdicts are there; scoring
goes straight on while kube-scheduler does its own, and `prioritize` collects the result.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, Self

from gateway.binding import Binding
from gateway.calls import (
    BindCall,
    CallFailedError,
    FilterOutcome,
    PreemptCall,
    PreemptOutcome,
    PrioritizeOutcome,
    SchedulingCall,
)
from gateway.claims import Claims
from gateway.decisions import Decision, DecisionLog
from gateway.halves import FilterHalf, ScoreHalf, Subject
from gateway.metrics import CycleMetrics
from gateway.policy import PolicyHolder
from gateway.rechecks import Rechecks

REMEMBERED_SCORES = 256
"""Pods whose scores wait for a prioritize call; one that never comes must not cost memory."""


class ClusterView(Protocol):
    """What a cycle asks about the cluster as a whole."""

    def synced(self) -> bool:
        """Whether nodes and pods have been read."""

    def age(self) -> float:
        """Return for how many seconds the API server has been silent."""


@dataclass(frozen=True, slots=True)
class _Scored:
    """The scores of a pod's survivors, on their way; normalised for exactly these nodes.

    kube-scheduler asks for them within the filter call's own time, or its attempt has ended.
    """

    names: Sequence[str]
    scores: "asyncio.Future[Sequence[int]]"
    deadline: float

    def answers(self, call: SchedulingCall) -> bool:
        """Whether these are the scores that *call* asks for, and of the same attempt."""
        in_time = asyncio.get_running_loop().time() < self.deadline
        return in_time and not call.plugin and _same(self.names, call.node_names)

    async def collect(self, names: Sequence[str]) -> Sequence[int]:
        """Return the scores in the order of *names*, the same nodes."""
        scores = await asyncio.shield(self.scores)
        if not scores or names == self.names:
            return scores
        by_name = dict(zip(self.names, scores, strict=True))
        return [by_name[name] for name in names]


class CycleRunner:
    """Answers the calls of the edge; see `gateway.calls.Cycles`."""

    def __init__(
        self,
        *,
        cluster: ClusterView,
        policy: PolicyHolder,
        filter_half: FilterHalf,
        score_half: ScoreHalf,
        rechecks: Rechecks,
        claims: Claims,
        binding: Binding,
        decisions: DecisionLog,
        metrics: CycleMetrics,
    ) -> None:
        self._cluster = cluster
        self._policy = policy
        self._filter_half = filter_half
        self._score_half = score_half
        self._rechecks = rechecks
        self._claims = claims
        self._binding = binding
        self._decisions = decisions
        self._metrics = metrics
        self._turn = asyncio.Lock()
        self._scored: OrderedDict[str, _Scored] = OrderedDict()
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._tasks.__aexit__(*error)  # type: ignore[arg-type]

    async def filter(self, call: SchedulingCall) -> FilterOutcome:
        """Rule nodes out, and go on to score the others."""
        if not self._is_ours(call.pod.spec.scheduler_name):
            return FilterOutcome(feasible=call.node_names)
        answer: asyncio.Future[FilterOutcome] = asyncio.get_running_loop().create_future()
        cycle = self._tasks.create_task(self._cycle(call, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            cycle.cancel()  # nobody waits any more: what it would find is not to be recorded
            raise

    async def prioritize(self, call: SchedulingCall) -> PrioritizeOutcome:
        """Rank nodes: collect the scores of the pod's cycle, or score as a cycle of its own."""
        if not self._is_ours(call.pod.spec.scheduler_name):
            return PrioritizeOutcome(scores=())
        scored = self._scored.pop(call.pod.uid, None)
        if scored is not None and scored.answers(call):
            return PrioritizeOutcome(scores=await scored.collect(call.node_names))
        decision = self._decisions.latest(call.pod.namespace, call.pod.name, call.pod.uid)
        if decision is None:
            decision = self._begin(call)
        async with self._in_turn(decision):
            subject = Subject.of_call(call)
            return PrioritizeOutcome(scores=await self._score_half.run(subject, decision))

    async def preempt(self, call: PreemptCall) -> PreemptOutcome:
        """Drop the candidates on which the pod could not run even without the victims."""
        if not self._is_ours(call.pod.spec.scheduler_name):
            return PreemptOutcome(victims=call.victims)
        decision = self._begin(call)
        async with self._in_turn(decision):
            filtered = await self._filter_half.run(Subject.of_preemption(call))
            decision.preempt, decision.generation = filtered.record, filtered.generation
        feasible = filtered.outcome.feasible
        return PreemptOutcome(victims={name: call.victims[name] for name in feasible})

    async def bind(self, call: BindCall) -> None:
        """Bind the pod; waits for no cycle, unless its claim was lost and has to be renewed."""
        self._scored.pop(call.uid, None)
        decision = self._decisions.latest(call.namespace, call.name, call.uid)
        if not self._claims.hold(call, decision):
            await self._claims.know(call)
            async with self._turn:
                await self._claims.renew(call, decision)
        await self._binding.bind(call, decision)

    def _is_ours(self, scheduler_name: str) -> bool:
        """Whether the pod has a profile here; extenders are asked about every pod."""
        if not self._cluster.synced():
            raise CallFailedError("Moorage has not read the cluster yet")
        if self._policy.resolved is None:
            raise CallFailedError("Moorage has no policy yet; see /readyz of its gateway")
        if self._policy.has_profile(scheduler_name):
            return True
        self._metrics.foreign()
        return False

    def _begin(self, call: SchedulingCall | PreemptCall) -> Decision:
        decision = Decision(
            namespace=call.pod.namespace,
            pod=call.pod.name,
            uid=call.pod.uid,
            time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            profile=call.pod.spec.scheduler_name,
            policy_revision=self._policy.revision,
            snapshot_age_seconds=self._cluster.age(),
        )
        self._decisions.add(decision)
        return decision

    @asynccontextmanager
    async def _in_turn(self, decision: Decision) -> AsyncIterator[None]:
        """Wait for all cycles before this one; note in the decision why the body failed."""
        start = time.perf_counter()
        async with self._turn:
            decision.queue_seconds = time.perf_counter() - start
            self._metrics.queued(decision.queue_seconds)
            try:
                yield
            except CallFailedError as error:
                decision.error = str(error)
                raise

    async def _cycle(self, call: SchedulingCall, answer: "asyncio.Future[FilterOutcome]") -> None:
        before = self._decisions.latest(call.pod.namespace, call.pod.name, call.pod.uid)
        decision = self._begin(call)
        try:
            async with self._in_turn(decision):
                subject = Subject.of_call(call)
                self._claims.release(call.pod.uid)
                filtered = await self._filter_half.run(subject)
                filtered = await self._rechecks.run(subject, filtered, before)
                decision.filter, decision.generation = filtered.record, filtered.generation
                outcome = await self._claims.take(subject, filtered.outcome, decision)
                if answer.cancelled():
                    self._claims.release(call.pod.uid)
                    return
                answer.set_result(outcome)
                await asyncio.sleep(0)  # the answer goes out before the scores are asked for
                # kube-scheduler takes a single node without asking for scores.
                if len(outcome.feasible) > 1 and not call.plugin:
                    await self._score_ahead(subject.restricted(outcome.feasible), decision)
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            if not answer.done():
                answer.set_exception(error)

    async def _score_ahead(self, subject: Subject, decision: Decision) -> None:
        scores: asyncio.Future[Sequence[int]] = asyncio.get_running_loop().create_future()
        self._scored[subject.pod.uid] = _Scored(subject.names, scores, subject.deadline)
        if len(self._scored) > REMEMBERED_SCORES:
            self._scored.popitem(last=False)
        try:
            scores.set_result(await self._score_half.run(subject, decision))
        except asyncio.CancelledError:
            scores.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - prioritize gets it, if it comes
            decision.score_error = str(error)
            scores.set_exception(error)
            scores.exception()  # it may never come


def _same(some: Sequence[str], others: Sequence[str]) -> bool:
    return len(some) == len(others) and (some == others or set(some) == set(others))
