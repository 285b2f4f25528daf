"""Answers the calls of the edge with scheduling and binding cycles; see `gateway.cycle.Cycles`.

A scheduling cycle is a filter phase and a score phase. The filter call is answered as soon as the
verdicts are there. Scoring goes on while kube-scheduler does its own, and `prioritize` collects the
scores. Scheduling cycles run one at a time; binding cycles do not wait for them.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from gateway.binding.binding import BindDispatcher
from gateway.cluster.cluster import Cluster
from gateway.cycle import BindCall, CallFailedError, Cycle, Judge, NodeSet, Rank
from gateway.cycle.answers import PhaseVerdicts
from gateway.cycle.cycle_states import CycleStates
from gateway.cycle.decision import Decision, FilterRecord
from gateway.decisions.log import Attempt, DecisionLog
from gateway.leadership.term import StaleTermError, Term
from gateway.policy.policy import PolicyHolder
from gateway.scheduling.bind_check import JUDGED_BYTES, JUDGED_LIMIT, STALE, BindCheck
from gateway.scheduling.claims import Claims
from gateway.scheduling.groups import Groups
from gateway.scheduling.metrics import CycleMetrics
from gateway.scheduling.nominated import NominatedPods
from gateway.scheduling.queue import CycleQueue
from gateway.scheduling.recheck import Recheck
from gateway.scheduling.rejected import RejectedPods
from gateway.scheduling.reservations import Reservations

NOT_THEIRS = "this kube-scheduler may not place such pods; see the gateway's --scheduler-identity"

UNCOLLECTED_LIMIT = 256
"""Pods whose scores wait for a prioritize call; it may never come."""

Scoring = asyncio.Task[Exception | None]
"""Scores a cycle after its filter call was answered; returns why that failed, if it has."""


class Scheduler:
    """Runs the cycles."""

    def __init__(
        self,
        *,
        term: Term,
        cluster: Cluster,
        policy: PolicyHolder,
        queue: CycleQueue,
        judge: Judge,
        rank: Rank,
        binding: BindDispatcher,
        log: DecisionLog,
        cycle_states: CycleStates,
        rejected: RejectedPods,
        on_cycle_end: Sequence[Callable[[Cycle], None]],
        on_bind: Sequence[Callable[[Decision], None]],
        metrics: CycleMetrics,
        recheck_time: float,
        unknown_pod_wait: float,
        group_bind_wait: float,
    ) -> None:
        """Run cycles in turns of *queue*.

        Args:
            term: The time in which this process decides.
            cluster: The state that is decided by.
            policy: The plugins of each profile.
            queue: Gives cycles their turns.
            judge: Asks filter plugins about the nodes of a cycle.
            rank: Asks score plugins about some nodes for a cycle.
            binding: Binds pods.
            log: Keeps decisions.
            cycle_states: Keeps what plugins keep for the bind.
            rejected: Keeps pods that found no node, to be tried again.
            on_cycle_end: Observers, called at the end of each cycle, perhaps with an error, in
                order, in the event loop: they return at once, and never raise.
            on_bind: Are called when the outcome of a bind is in a decision.
            metrics: Counts cycles.
            recheck_time: Seconds that a pod which is rejected once more waits for newer state.
            unknown_pod_wait: Seconds that a pod which the watch has not shown may be waited for.
            group_bind_wait: Seconds that members of a group keep what they claimed without a bind.
        """
        self._term = term
        self._cluster = cluster
        self._state = state = cluster.state
        self._policy = policy
        self._queue = queue
        self._judge = judge
        self._rank = rank
        self._binding = binding
        self._log = log
        self._cycle_states = cycle_states
        self._rejected = rejected
        self._on_cycle_end = (metrics.on_cycle_end, *on_cycle_end)
        self._on_bind = on_bind
        self._metrics = metrics
        self._nominated = NominatedPods(state, judge)
        self._recheck = Recheck(state, self._nominated.judge, recheck_time)
        self._groups = Groups(state, group_bind_wait)
        self.reservations = Reservations(state)
        self._claims = Claims(
            state,
            policy,
            rank,
            cycle_states,
            self._groups,
            self.reservations,
            metrics,
            unknown_pod_wait,
        )
        self._bind_check = BindCheck(
            cluster=cluster,
            policy=policy,
            judge=judge,
            queue=queue,
            cycle_states=cycle_states,
            metrics=metrics,
            binding=binding,
            unknown_pod_wait=unknown_pod_wait,
        )
        self._uncollected: OrderedDict[str, tuple[Cycle, Scoring]] = OrderedDict()

    async def filter(self, cycle: Cycle) -> None:
        """Rule nodes out, and go on to score the others."""
        await self._term.enter(cycle.deadline)
        if (age := self._age(cycle)) is None:
            return
        pod, profile, uid = cycle.pod, cycle.profile, cycle.uid
        if uid in self._cycle_states.by_uid:
            self._cycle_states.end(uid)
        self._binding.pods_ahead.note(pod)
        previous = self._begin(cycle, age)
        scoring: Scoring | None = None
        try:
            has_scores = bool(cycle.plugin) or profile in self._policy.dependencies.scores
            filters = self._policy.dependencies.filters.get(profile)
            if filters is None and not has_scores:
                self._pass_all(cycle)
                return
            if uid in self._state.places:
                await self._binding.unknown.resolve_pending_bind(pod.namespace, pod.name, uid)
            if filters is not None and filters.claimants:
                await self._claims.prepare(cycle)
            cycle.decision.queue_seconds = await self._queue.begin_turn()
            try:
                cycle.decision.policy_revision = self._policy.revision
                if self._groups.passes:
                    self._groups.filtered(cycle)
                if uid in self._state.places:
                    self._state.release(uid)  # a bind that has come keeps its place
                if profile in self._policy.dependencies.filters:
                    verdicts = await self._judge(cycle)
                    if self._state.nominated:
                        verdicts = await self._nominated.count(cycle, verdicts)
                    if not verdicts.record.feasible and previous and previous.rejected_all:
                        verdicts = await self._recheck.run(cycle, verdicts)
                    self._take(cycle, verdicts)
                    if verdicts.record.claimants and verdicts.record.feasible:
                        await self._claims.take(cycle)
                else:
                    self._pass_all(cycle)
                has_scores = profile in self._policy.dependencies.scores
                if has_scores and not cycle.plugin and len(cycle.feasible.names) > 1:
                    # kube-scheduler takes a single node without asking for scores.
                    scoring = asyncio.create_task(self._score_ahead(cycle))
                    self._uncollected[uid] = cycle, scoring
                    self._uncollected.move_to_end(uid)
                    if len(self._uncollected) > UNCOLLECTED_LIMIT:
                        self._uncollected.popitem(last=False)
            finally:
                if scoring is None:
                    self._queue.end_turn()
        except CallFailedError as error:
            cycle.decision.error = str(error)
            raise
        finally:
            if scoring is None:
                self._end(cycle)

    async def prioritize(self, cycle: Cycle) -> Sequence[int]:
        """Rank nodes: collect the scores of the pod's cycle, or score as a cycle of its own."""
        await self._term.enter(cycle.deadline)
        if (age := self._age(cycle)) is None:
            return ()
        if not cycle.plugin and cycle.profile not in self._policy.dependencies.scores:
            return ()
        ahead = None if cycle.plugin else self._uncollected.pop(cycle.uid, None)
        if ahead is not None:
            scored, scoring = ahead
            # kube-scheduler asks in the time of the filter call, or its attempt has ended.
            in_time = asyncio.get_running_loop().time() < scored.deadline
            if in_time and scored.feasible.same_nodes(cycle.nodes):
                return await _collected(scored, scoring, cycle.nodes)
        return await self._score_alone(cycle, age)

    async def preempt(self, cycle: Cycle) -> None:
        """Drop the candidates on which the pod could not run even without the victims."""
        await self._term.enter(cycle.deadline)
        if (age := self._age(cycle)) is None or cycle.pod.spec.node_name:
            return  # a pod on a node asks for room to grow there, not whether it may run there
        if cycle.profile not in self._policy.dependencies.filters:
            return
        self._begin(cycle, age, again=True)
        decision = cycle.decision
        try:
            decision.queue_seconds = await self._queue.begin_turn()
            try:
                decision.policy_revision = self._policy.revision
                verdicts = await self._judge(cycle)
                if self._state.nominated:
                    verdicts = await self._nominated.count(cycle, verdicts)
                cycle.judge(verdicts)
                decision.preempt, decision.generation = verdicts.record, verdicts.generation
                self._metrics.rejected(verdicts.record)
            finally:
                self._queue.end_turn()
        except CallFailedError as error:
            decision.error = str(error)
            raise
        finally:
            self._end(cycle)

    async def bind(self, call: BindCall) -> None:
        """Bind the pod; waits for no cycle, unless its node has to be checked again."""
        if call.profiles is not None:
            await self._require_theirs(call, call.profiles)
        self._uncollected.pop(call.uid, None)
        member = self._state.pods.get(call.uid) or self._binding.pods_ahead.pod(call.uid)
        bound = False
        if member is not None and member.spec.scheduling_group is not None:
            self._groups.binds(member, call.node)
            await self._groups.wait(member, call)
        try:
            while not bound:
                epoch = await self._term.enter(call.deadline)
                pod = self._state.pods.get(call.uid, member)  # as it is after these waits
                decision = self._log.latest(call.namespace, call.name, call.uid)
                if self._state.places.get(call.uid, call.node) != call.node:
                    await self._binding.unknown.resolve_pending_bind(
                        call.namespace, call.name, call.uid, call.node
                    )
                try:
                    with suppress(StaleTermError):  # checked and sent again in the next term
                        pod = await self._bind_check.run(call, pod, decision, epoch)
                        await self._binding.bind(call, pod, decision, epoch)
                        bound = True
                finally:
                    if decision is not None:
                        for call_back in self._on_bind:
                            call_back(decision)
        finally:
            self._binding.pods_ahead.forget(call.uid)
            if member is not None and member.spec.scheduling_group is not None:
                self._groups.on_bind_end(member, bound=bound)

    async def _require_theirs(self, call: BindCall, profiles: frozenset[str]) -> None:
        """Fail the bind of a pod of another profile; what calls say of the pod does not count."""
        pod = self._state.pods.get(call.uid) or await self._binding.unknown.read(call)
        if pod is not None and pod.spec.scheduler_name not in profiles:
            raise CallFailedError(NOT_THEIRS)

    def _take(self, cycle: Cycle, verdicts: PhaseVerdicts) -> None:
        """Take over the verdicts of a filter phase."""
        cycle.judge(verdicts)
        decision, record = cycle.decision, verdicts.record
        decision.filter, decision.generation = record, verdicts.generation
        judged = self._bind_check.judged
        judged.pop(cycle.uid, None)
        filters = self._policy.dependencies.filters.get(cycle.profile)
        if record.feasible and filters is not None and not (cycle.plugin and filters.count > 1):
            pod = self._state.pods.get(cycle.uid)
            judged[cycle.uid] = verdicts.bitmap, verdicts.codes, pod
            size = verdicts.codes.nbytes
            while len(judged) > JUDGED_LIMIT or len(judged) * size > JUDGED_BYTES:
                judged.popitem(last=False)
        if verdicts.kept:
            self._cycle_states.begin(cycle.uid, verdicts.kept)
        if not record.feasible or cycle.uid in self._rejected.pods:
            self._rejected.note(cycle)
        if verdicts.group is not None:
            decision.group = verdicts.group
            self.reservations.note(cycle, verdicts.group)
        if record.feasible < record.nodes:
            self._metrics.rejected(record)
            if not record.feasible:
                self._groups.rejected(cycle)

    async def _score_ahead(self, cycle: Cycle) -> Exception | None:
        """Score the feasible nodes; the turn, and the cycle, last until they are scored."""
        try:
            scale = self._policy.score_scale
            scores = await self._rank(cycle, cycle.feasible)
            cycle.rank(scores, scale)
            if scores.kept:
                self._cycle_states.add(cycle.uid, scores.kept)
        except Exception as error:  # noqa: BLE001 - whoever asks for the scores gets it
            cycle.decision.score_error = str(error)
            return error
        finally:
            self._end(cycle)
            self._queue.end_turn()
        return None

    async def _score_alone(self, cycle: Cycle, age: float) -> Sequence[int]:
        """Score the nodes of a cycle; this goes on with the pod's attempt, if there is one."""
        metadata = cycle.pod.metadata
        decision = self._log.latest(metadata.namespace, metadata.name, cycle.uid)
        if decision is None:
            self._begin(cycle, age)
        else:
            cycle.begin(decision, self._state.rows.names)
        try:
            waited, revision = await self._queue.begin_turn(), self._policy.revision
            try:
                if cycle.decision.filter and cycle.decision.policy_revision != revision:
                    # The policy has changed since the filter phase.
                    self._begin(cycle, self._cluster.age(), again=True)
                cycle.decision.queue_seconds, cycle.decision.policy_revision = waited, revision
                scale = self._policy.score_scale
                scores = await self._rank(cycle, cycle.nodes)
                cycle.rank(scores, scale)
                if scores.kept:
                    self._cycle_states.add(cycle.uid, scores.kept)
                return cycle.points
            finally:
                self._queue.end_turn()
        except CallFailedError as error:
            cycle.decision.error = str(error)
            raise
        finally:
            self._end(cycle)

    def _pass_all(self, cycle: Cycle) -> None:
        """Let all nodes pass: the profile has no filter plugins."""
        decision, count = cycle.decision, len(cycle.nodes.names)
        decision.filter = FilterRecord(nodes=count, feasible=count, seconds=0.0)
        decision.generation = self._state.generation
        self._rejected.note(cycle)

    def _age(self, cycle: Cycle) -> float | None:
        """Return how old the state is; None if the pod is of others: extenders get every pod."""
        if cycle.profiles is not None:
            known = self._state.pods.get(cycle.uid, cycle.pod)  # calls may say anything
            if not cycle.profiles >= {cycle.profile, known.spec.scheduler_name}:
                raise CallFailedError(NOT_THEIRS)
        if (age := self._cluster.age()) > self._cluster.max_age:
            if age == math.inf:
                raise CallFailedError("Moorage has not read the cluster yet")
            self._metrics.stale()
            raise CallFailedError(STALE)
        if self._policy.resolved is None:
            raise CallFailedError("Moorage has no policy yet; see /readyz of its gateway")
        if cycle.profile in self._policy.profiles:
            return age
        self._metrics.foreign()
        return None

    def _begin(self, cycle: Cycle, state_age: float, *, again: bool = False) -> Attempt | None:
        """Begin an attempt on a pod, or (*again*) another cycle of the attempt before.

        Returns:
            The attempt before on this very pod, if it is kept.
        """
        metadata, rows = cycle.pod.metadata, self._state.rows
        decision = Decision(
            namespace=metadata.namespace,
            pod=metadata.name,
            uid=cycle.uid,
            time=datetime.now(UTC).replace(microsecond=0),
            profile=cycle.profile,
            policy_revision=self._policy.revision,
            epoch=self._term.epoch,
            snapshot_age_seconds=state_age,
            traceparent=cycle.traceparent,
            cluster_nodes=len(rows.of),
            caller=cycle.caller,
        )
        previous = self._log.add(decision, again=again)
        cycle.begin(decision, rows.names)
        return previous

    def _end(self, cycle: Cycle) -> None:
        cycle.end(self._state.rows.names)
        for call_back in self._on_cycle_end:
            call_back(cycle)


async def _collected(scored: Cycle, scoring: Scoring, nodes: NodeSet) -> Sequence[int]:
    """Return the scores of a cycle in the order of *nodes*, once they are there."""
    failure = scoring.result() if scoring.done() else await asyncio.shield(scoring)
    if failure is not None:
        raise failure
    points, feasible = scored.points, scored.feasible
    if feasible is nodes or not points or feasible.names == nodes.names:
        return points
    points_of = dict(zip(feasible.names, points, strict=True))
    return [points_of[name] for name in nodes.names]
