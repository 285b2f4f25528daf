"""Runs scheduling cycles one at a time, in the order of arrival, whoever calls.

A cycle is filter and score. The filter call is answered as soon as the verdicts are there; scoring
goes straight on while kube-scheduler does its own, and `prioritize` collects the result.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol

from msgspec.structs import replace

from gateway.binding.binding import Binding
from gateway.cache.filter_cache import RememberedVerdicts
from gateway.cache.rejections import Rejections
from gateway.cache.score_cache import RememberedScores
from gateway.calls import (
    BindCall,
    CallFailedError,
    FilterOutcome,
    PreemptCall,
    PreemptOutcome,
    PrioritizeOutcome,
    SchedulingCall,
)
from gateway.cycle.claims import Claims
from gateway.cycle.filtering import FilterHalf
from gateway.cycle.recheck import Rechecks
from gateway.cycle.request import Subject
from gateway.cycle.score_ahead import Expecting, ScoresAhead, give_up
from gateway.decisions.log import Decision, DecisionLog
from gateway.metrics import CycleMetrics
from gateway.policy.policy import PolicyHolder


class ClusterView(Protocol):
    """What a cycle asks about the cluster as a whole."""

    def synced(self) -> bool:
        """Whether nodes and pods have been read."""

    def age(self) -> float:
        """Return for how many seconds the API server has been silent."""


class CycleRunner:
    """Answers the calls of the edge; see `gateway.calls.Cycles`."""

    def __init__(
        self,
        *,
        cluster: ClusterView,
        policy: PolicyHolder,
        filter_half: FilterHalf,
        verdicts: RememberedVerdicts,
        ahead: ScoresAhead,
        scores: RememberedScores,
        rechecks: Rechecks,
        rejections: Rejections,
        claims: Claims,
        binding: Binding,
        decisions: DecisionLog,
        metrics: CycleMetrics,
    ) -> None:
        self._cluster = cluster
        self._policy = policy
        self._filter_half = filter_half
        self._verdicts = verdicts
        self._scores = scores
        self._rechecks = rechecks
        self._rejections = rejections
        self._claims = claims
        self._binding = binding
        self._decisions = decisions
        self._metrics = metrics
        self._turn = asyncio.Lock()
        self._ahead = ahead

    async def drain(self) -> None:
        """Wait for the cycles that have begun."""
        async with self._turn:
            pass

    async def filter(self, call: SchedulingCall) -> FilterOutcome:
        """Rule nodes out, and go on to score the others."""
        if not self._is_ours(call.pod.spec.scheduler_name):
            return FilterOutcome(feasible=call.node_names)
        before = self._decisions.latest(call.pod.namespace, call.pod.name, call.pod.uid)
        decision, subject = self._begin(call), Subject.of_call(call)
        async with self._in_turn(decision) as turn:
            self._claims.release(call.pod.uid)
            expecting = Expecting(lambda: self._ahead.expect(subject, decision.profile))
            try:
                known = decision.profile in self._rejections.profiles
                filtered = self._rejections.recall(subject) if known else None
                if filtered is None:
                    filtered = await self._verdicts.run(subject)
                if not filtered.outcome.feasible:
                    filtered = await self._rechecks.run(subject, filtered, before)
                    self._rejections.remember(subject, filtered)
                decision.filter, decision.generation = filtered.record, filtered.generation
                self._metrics.rejected(filtered.record)
                outcome = filtered.outcome
                if filtered.record.claimants:
                    outcome = await self._claims.take(subject, outcome, decision)
            except BaseException:
                give_up(expecting.end())
                raise
            ahead = self._ahead.begin(subject, filtered, outcome, decision, expecting.end())
            if ahead is not None:
                turn.lasts_until(ahead.scored)
                outcome = replace(outcome, ahead=ahead.scores)
        return outcome

    async def prioritize(self, call: SchedulingCall) -> PrioritizeOutcome:
        """Rank nodes: collect the scores of the pod's cycle, or score as a cycle of its own."""
        if not self._is_ours(call.pod.spec.scheduler_name):
            return PrioritizeOutcome(scores=())
        ahead = self._ahead.take(call.pod.uid)
        if ahead is not None and ahead.answers(call):
            return PrioritizeOutcome(scores=await ahead.collect(call.node_names))
        decision = self._decisions.latest(call.pod.namespace, call.pod.name, call.pod.uid)
        if decision is None:
            decision = self._begin(call)
        async with self._in_turn(decision):
            if decision.filter and decision.policy_revision != self._policy.revision:
                decision = self._begin(call)  # the policy has changed since the filter half
            subject = Subject.of_call(call)
            scored = await self._scores.run(subject)
            decision.score = scored.record
            return PrioritizeOutcome(scores=scored.scores())

    async def preempt(self, call: PreemptCall) -> PreemptOutcome:
        """Drop the candidates on which the pod could not run even without the victims."""
        if not self._is_ours(call.pod.spec.scheduler_name):
            return PreemptOutcome(victims=call.victims)
        decision = self._begin(call)
        async with self._in_turn(decision):
            filtered = await self._filter_half.run(Subject.of_preemption(call))
            decision.preempt, decision.generation = filtered.record, filtered.generation
            self._metrics.rejected(filtered.record)
        feasible = filtered.outcome.feasible
        return PreemptOutcome(victims={name: call.victims[name] for name in feasible})

    async def bind(self, call: BindCall) -> None:
        """Bind the pod; waits for no cycle, unless its claim was lost and has to be renewed."""
        self._ahead.forget(call.uid)
        decision = self._decisions.latest(call.namespace, call.name, call.uid)
        if not self._claims.hold(call, decision):
            await self._claims.know(call)
            async with self._turn:
                await self._claims.renew(call, decision)
        await self._binding.bind(call, decision)

    @asynccontextmanager
    async def between_cycles(self) -> AsyncIterator[None]:
        """Let no cycle run inside the block; those that have come before end first."""
        async with self._turn:
            yield

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
            time=datetime.now(UTC).replace(microsecond=0),
            profile=call.pod.spec.scheduler_name,
            policy_revision=self._policy.revision,
            snapshot_age_seconds=self._cluster.age(),
        )
        self._decisions.add(decision)
        return decision

    def _in_turn(self, decision: Decision) -> "_Turn":
        return _Turn(self._turn, decision, self._policy, self._metrics)


class _Turn:
    """A turn of the cycles, after all before it; may last longer than the call that it answers."""

    def __init__(
        self,
        turn: asyncio.Lock,
        decision: Decision,
        policy: PolicyHolder,
        metrics: CycleMetrics,
    ) -> None:
        """Note in the decision how long it had to wait, and why it failed."""
        self._turn = turn
        self._decision = decision
        self._policy = policy
        self._metrics = metrics
        self._last: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> "_Turn":
        start = time.perf_counter()
        await self._turn.acquire()
        decision = self._decision
        decision.queue_seconds = time.perf_counter() - start
        self._metrics.queued(decision.queue_seconds)
        if decision.filter is None:
            decision.policy_revision = self._policy.revision
        return self

    async def __aexit__(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        __: TracebackType | None,
    ) -> None:
        if isinstance(error, CallFailedError):
            self._decision.error = str(error)
        if self._last is None:
            self._turn.release()
        else:
            self._last.add_done_callback(lambda _: self._turn.release())

    def lasts_until(self, task: "asyncio.Task[Any]") -> None:
        """Let no other cycle begin before *task* has ended."""
        self._last = task
