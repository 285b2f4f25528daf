"""Answers the calls of the edge with scheduling and binding cycles; see `gateway.calls.Cycles`.

A scheduling cycle is a filter phase and a score phase. The filter call is answered as soon as the
verdicts are there. Scoring goes on while kube-scheduler does its own, and `prioritize` collects the
scores. Scheduling cycles run one at a time; binding cycles do not wait for them.
"""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime

from msgspec.structs import replace

from gateway.binding.binding import Binding
from gateway.calls import (
    BindCall,
    CallFailedError,
    CycleRequest,
    FilterOutcome,
    NodeSet,
    PreemptCall,
    PreemptOutcome,
    PrioritizeOutcome,
)
from gateway.cycle.bind_check import STALE, BindCheck
from gateway.cycle.claims import Claims
from gateway.cycle.metrics import CycleMetrics
from gateway.cycle.phases.filtering import FilterPhaseResult
from gateway.cycle.phases.phase import Phase
from gateway.cycle.phases.scoring import ScorePhaseResult
from gateway.cycle.queue import CycleQueue, Turn
from gateway.cycle.recheck import Recheck
from gateway.cycle.score_ahead import ScoreAhead
from gateway.cycle.view import ClusterView
from gateway.decisions.attempts.log import DecisionLog
from gateway.decisions.cycle import CycleObserver, SchedulingCycle
from gateway.decisions.cycle_states import CycleStates
from gateway.decisions.records import Decision, FilterRecord
from gateway.decisions.rejected import RejectedPods
from gateway.leadership.term import StaleTermError, Term
from gateway.policy.policy import PolicyHolder


class CycleRunner:
    """Runs the cycles."""

    def __init__(
        self,
        *,
        term: Term,
        cluster: ClusterView,
        policy: PolicyHolder,
        queue: CycleQueue,
        filter_phase: Phase[FilterPhaseResult],
        score_phase: Phase[ScorePhaseResult],
        recheck: Recheck,
        claims: Claims,
        bind_check: BindCheck,
        binding: Binding,
        decisions: DecisionLog,
        cycle_states: CycleStates,
        rejected: RejectedPods,
        observers: Sequence[CycleObserver],
        metrics: CycleMetrics,
    ) -> None:
        """The phases may have a cache before them or not; *observers* are called in order."""
        self._term = term
        self._cluster = cluster
        self._policy = policy
        self._queue = queue
        self._filter_phase = filter_phase
        self._score_phase = score_phase
        self._score_ahead = ScoreAhead(score_phase, policy, cycle_states, self._ended)
        self._recheck = recheck
        self._claims = claims
        self._bind_check = bind_check
        self._binding = binding
        self._decisions = decisions
        self._cycle_states = cycle_states
        self._rejected = rejected
        self._observers = observers
        self._metrics = metrics

    async def filter(self, request: CycleRequest) -> FilterOutcome:
        """Rule nodes out, and go on to score the others."""
        await self._term.enter(request.deadline)
        if not self._is_ours(request.profile):
            return FilterOutcome(feasible=request.nodes)
        pod = request.pod
        self._cycle_states.end(pod.uid)
        self._binding.pods_ahead.note(pod)
        previous = self._decisions.latest(pod.namespace, pod.name, pod.uid)
        cycle = self._begin(request)
        with self._observed(cycle):
            if not self._has_plugins(request):
                return self._pass_all(cycle)
            await self._binding.unknown.resolve_pending_bind(pod.namespace, pod.name, pod.uid)
            await self._claims.prepare(request)
            async with self._turn(cycle.decision) as turn:
                self._claims.release(pod.uid)
                if self._policy.dependencies.filters.get(request.profile) is None:
                    outcome = self._pass_all(cycle)
                else:
                    outcome = await self._filter(cycle, previous)
                return self._begin_scoring(cycle, outcome, turn)

    async def prioritize(self, request: CycleRequest) -> PrioritizeOutcome:
        """Rank nodes: collect the scores of the pod's cycle, or score as a cycle of its own."""
        await self._term.enter(request.deadline)
        if not self._is_ours(request.profile) or not self._has_score_plugins(request):
            return PrioritizeOutcome(scores=())
        pod = request.pod
        ahead = self._score_ahead.take(pod.uid)
        if ahead is not None and ahead.are_for(request):
            return await ahead.collect(request)
        decision = self._decisions.latest(pod.namespace, pod.name, pod.uid)
        cycle = self._cycle(request, decision) if decision else self._begin(request)
        with self._observed(cycle):
            async with self._turn(cycle.decision):
                decision = cycle.decision
                if decision.filter and decision.policy_revision != self._policy.revision:
                    # The policy has changed since the filter phase.
                    cycle.decision = self._begin(request, again=True).decision
                result = await self._score_phase.run(request)
                cycle.decision.score, cycle.scores = result.record, result.by_row
                self._cycle_states.add(pod.uid, result.cycle_state)
                return PrioritizeOutcome(scores=result.scores(self._policy.score_scale))

    async def preempt(self, call: PreemptCall) -> PreemptOutcome:
        """Drop the candidates on which the pod could not run even without the victims."""
        await self._term.enter(call.deadline)
        profile = call.pod.spec.scheduler_name
        if not self._is_ours(profile) or profile not in self._policy.dependencies.filters:
            return PreemptOutcome(victims=call.victims)
        request = CycleRequest(
            pod=call.pod,
            pod_json=call.pod_json,
            nodes=NodeSet(list(call.victims)),
            excluded_pods=[uid for victims in call.victims.values() for uid in victims.uids],
            deadline=call.deadline,
            traceparent=call.traceparent,
            caller=call.caller,
        )
        cycle = self._begin(request, again=True)
        decision = cycle.decision
        with self._observed(cycle):
            async with self._turn(decision):
                result = await self._filter_phase.run(request)
                decision.preempt, decision.generation = result.record, result.generation
                cycle.verdicts = result.verdicts.by_row
                self._metrics.rejected(result.record)
        feasible = result.outcome.feasible.names
        return PreemptOutcome(victims={name: call.victims[name] for name in feasible})

    async def bind(self, call: BindCall) -> None:
        """Bind the pod; waits for no cycle, unless its node has to be checked again."""
        self._score_ahead.take(call.uid)
        bound = False
        try:
            while not bound:
                epoch = await self._term.enter(call.deadline)
                with suppress(StaleTermError):  # checked and sent again in the next term
                    await self._bind(call, epoch)
                    bound = True
        finally:
            self._binding.pods_ahead.forget(call.uid)

    async def _bind(self, call: BindCall, epoch: int) -> None:
        decision = self._decisions.latest(call.namespace, call.name, call.uid)
        await self._binding.unknown.resolve_pending_bind(
            call.namespace, call.name, call.uid, call.node
        )
        try:
            await self._bind_check.run(call, decision, epoch)
            await self._binding.bind(call, decision, epoch)
        finally:
            if decision is not None:
                for observer in self._observers:
                    observer.bound(decision)

    async def _filter(self, cycle: SchedulingCycle, previous: Decision | None) -> FilterOutcome:
        request, decision = cycle.request, cycle.decision
        result = await self._filter_phase.run(request)
        if not len(result.outcome.feasible):
            result = await self._recheck.run(request, result, previous)
        decision.filter, decision.generation = result.record, result.generation
        cycle.verdicts = result.verdicts.by_row
        self._cycle_states.begin(request.pod.uid, result.cycle_state)
        self._rejected.note(decision)
        self._metrics.rejected(result.record)
        if not result.record.claimants:
            return result.outcome
        return await self._claims.take(cycle, result.outcome)

    def _begin_scoring(
        self, cycle: SchedulingCycle, outcome: FilterOutcome, turn: Turn
    ) -> FilterOutcome:
        """Score the feasible nodes; the turn, and the cycle, last until they are scored."""
        if not self._has_score_plugins(cycle.request):
            return outcome
        ahead = self._score_ahead.begin(cycle, outcome.feasible)
        if ahead is None:
            return outcome
        turn.extend_until(ahead.task)
        return replace(outcome, scores=ahead.outcome)

    def _pass_all(self, cycle: SchedulingCycle) -> FilterOutcome:
        """Let all nodes pass: the profile has no filter plugins."""
        request, decision = cycle.request, cycle.decision
        count = len(request.nodes)
        decision.filter = FilterRecord(nodes=count, feasible=count, seconds=0.0)
        self._rejected.note(decision)
        decision.generation = self._cluster.generation
        return FilterOutcome(feasible=request.nodes)

    def _has_plugins(self, request: CycleRequest) -> bool:
        dependencies = self._policy.dependencies
        has_filters = bool(request.plugin) or request.profile in dependencies.filters
        return has_filters or request.profile in dependencies.scores

    def _has_score_plugins(self, request: CycleRequest) -> bool:
        return bool(request.plugin) or request.profile in self._policy.dependencies.scores

    def _is_ours(self, profile: str) -> bool:
        """Whether there is such a profile here; extenders are asked about every pod."""
        if not self._cluster.synced():
            raise CallFailedError("Moorage has not read the cluster yet")
        if self._cluster.is_stale():
            self._metrics.stale()
            raise CallFailedError(STALE)
        if self._policy.resolved is None:
            raise CallFailedError("Moorage has no policy yet; see /readyz of its gateway")
        if self._policy.has_profile(profile):
            return True
        self._metrics.foreign()
        return False

    def _begin(self, request: CycleRequest, *, again: bool = False) -> SchedulingCycle:
        """Begin an attempt on a pod, or (*again*) another cycle of the attempt before."""
        decision = Decision(
            namespace=request.pod.namespace,
            pod=request.pod.name,
            uid=request.pod.uid,
            time=datetime.now(UTC).replace(microsecond=0),
            profile=request.profile,
            policy_revision=self._policy.revision,
            epoch=self._term.epoch,
            snapshot_age_seconds=self._cluster.age(),
            traceparent=request.traceparent,
            cluster_nodes=len(self._cluster.rows.of),
            caller=request.caller,
        )
        self._decisions.add(decision, again=again)
        return self._cycle(request, decision)

    def _cycle(self, request: CycleRequest, decision: Decision) -> SchedulingCycle:
        return SchedulingCycle(
            request=request,
            decision=decision,
            names=self._cluster.rows.names,
            start=time.perf_counter(),
        )

    @contextmanager
    def _observed(self, cycle: SchedulingCycle) -> Iterator[None]:
        """Note why the cycle failed, and call the observers at its end."""
        try:
            yield
        except CallFailedError as error:
            cycle.decision.error = str(error)
            raise
        finally:
            if not cycle.is_scoring:
                self._ended(cycle)

    def _ended(self, cycle: SchedulingCycle) -> None:
        cycle.names_after = self._cluster.rows.names
        cycle.decision.seconds += time.perf_counter() - cycle.start
        for observer in self._observers:
            observer.ended(cycle)

    @asynccontextmanager
    async def _turn(self, decision: Decision) -> AsyncIterator[Turn]:
        """Take the next turn; note in the decision how long it waited."""
        start = time.perf_counter()
        async with self._queue.turn() as turn:
            decision.queue_seconds = time.perf_counter() - start
            self._metrics.queued(decision.queue_seconds)
            if decision.filter is None:
                decision.policy_revision = self._policy.revision
            yield turn
