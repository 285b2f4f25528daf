"""Claims: pods that hold a node from their cycle on, before kube-scheduler binds them.

The extender protocol does not name the chosen node before the bind, and the next pods are filtered
before that. Where a plugin's verdicts depend on it, the gateway chooses the node in the cycle.
Called by `gateway.cycle.runner`, cycle by cycle, so that no two claims contradict each other.
A claim that is lost before its bind makes `gateway.cycle.bind_check` ask the plugins again.
"""

import numpy as np
from msgspec.structs import replace

from gateway.calls import CallFailedError, CycleRequest, FilterOutcome, NodeSet
from gateway.calls.outcomes import ANSWER_SECONDS
from gateway.cluster.pods import failure_of
from gateway.cluster.state import ClusterState
from gateway.cluster.waiters import wait_a_while
from gateway.cycle.bind_check import changed_at
from gateway.cycle.metrics import CycleMetrics
from gateway.cycle.phases.phase import Phase
from gateway.cycle.phases.scoring import ScorePhaseResult
from gateway.decisions.cycle import SchedulingCycle
from gateway.decisions.cycle_states import CycleStates
from gateway.decisions.records import ClaimRecord
from gateway.decisions.rules import claimed
from gateway.policy.policy import PolicyHolder


class Claims:
    """Takes claims in cycles."""

    def __init__(
        self,
        state: ClusterState,
        policy: PolicyHolder,
        score_phase: Phase[ScorePhaseResult],
        cycle_states: CycleStates,
        metrics: CycleMetrics,
        unknown_pod_wait: float,
    ) -> None:
        """Take claims of pods that *state* knows; others wait so many seconds for the watch."""
        self._state = state
        self._policy = policy
        self._score_phase = score_phase
        self._cycle_states = cycle_states
        self._metrics = metrics
        self._unknown_pod_wait = unknown_pod_wait

    async def prepare(self, request: CycleRequest) -> None:
        """Wait for a pod that may claim a node and that the watch has not shown yet."""
        filters = self._policy.dependencies.filters.get(request.profile)
        uid = request.pod.uid
        if not (filters and filters.claimants) or self._state.has_ended(uid):
            return
        if self._state.pod(uid) is None:
            await wait_a_while(
                self._state,
                lambda: self._state.pod(uid) is not None,
                self._unknown_pod_wait,
                request.deadline - ANSWER_SECONDS,
            )

    async def take(self, cycle: SchedulingCycle, outcome: FilterOutcome) -> FilterOutcome:
        """Claim the best of the feasible nodes, if a plugin wants that; offer no other then."""
        request, decision = cycle.request, cycle.decision
        claimants = decision.filter.claimants if decision.filter else []
        if not claimants or not len(outcome.feasible):
            return outcome
        pod = self._state.pod(request.pod.uid)
        if pod is None:
            return outcome  # nothing would end the claim of a pod that the watch never shows
        chosen = await self._choose(cycle, request.on(outcome.feasible))
        (node,) = chosen.names
        filters = self._policy.dependencies.filters.get(request.profile)
        # Binds do not wait for cycles: one may have put a pod there while this one was scored.
        outdated = filters is None or (changed_at(self._state, node, filters) > decision.generation)
        self._state.claim(pod, node, failure_of(request.pod_json))
        decision.claim = ClaimRecord(node=node, plugins=claimants, outdated=outdated)
        self._metrics.claimed()
        return replace(outcome, feasible=chosen)

    def release(self, uid: str) -> None:
        """Give up what an earlier attempt claimed; a bind that has come keeps its place."""
        self._state.release(uid)

    async def _choose(self, cycle: SchedulingCycle, request: CycleRequest) -> NodeSet:
        """Return the best node of the request."""
        count, totals = len(request.nodes), None
        if count > 1 and request.profile in self._policy.dependencies.scores:
            try:
                result = await self._score_phase.run(request)
            except CallFailedError as error:
                cycle.decision.score_error = str(error)
            else:
                cycle.decision.score, cycle.scores = result.record, result.by_row
                totals = result.totals
                self._cycle_states.add(request.pod.uid, result.cycle_state)
        chosen = np.zeros(count, np.bool_)
        chosen[claimed(request.pod.uid, request.nodes.names, totals)] = True
        return request.nodes.restricted(chosen)
