"""Claims: pods that hold a node from their cycle on, before kube-scheduler binds them.

The extender protocol does not name the chosen node before the bind, and the next pods are filtered
before that. Where a plugin's verdicts depend on it, the gateway chooses the node in the cycle.
Called by `gateway.cycle.runner`, cycle by cycle, so that no two claims contradict each other.
"""

import asyncio
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from msgspec.structs import replace

from gateway.calls import BindCall, CallFailedError, CycleRequest, FilterOutcome, NodeSet
from gateway.calls.outcomes import ANSWER_SECONDS
from gateway.cluster.state import ClusterState
from gateway.cluster.waiters import wait_for
from gateway.cycle.filtering import FilterPhaseResult
from gateway.cycle.phase import Phase
from gateway.cycle.scoring import ScorePhaseResult
from gateway.decisions.cycle_states import CycleStates
from gateway.decisions.log import ClaimRecord, Decision
from gateway.metrics import CycleMetrics
from gateway.policy.policy import PolicyHolder
from moorage.models import Pod, encode

UNKNOWN_SECONDS = 1.0
"""How long the bind of a pod that the watch has not shown yet waits for it."""


class Claims:
    """Takes claims in cycles, and sees to it at the bind that they still hold."""

    def __init__(
        self,
        state: ClusterState,
        policy: PolicyHolder,
        filter_phase: Phase[FilterPhaseResult],
        score_phase: Phase[ScorePhaseResult],
        cycle_states: CycleStates,
        metrics: CycleMetrics,
    ) -> None:
        self._state = state
        self._policy = policy
        self._filter_phase = filter_phase
        self._score_phase = score_phase
        self._cycle_states = cycle_states
        self._metrics = metrics

    async def take(
        self, request: CycleRequest, outcome: FilterOutcome, decision: Decision
    ) -> FilterOutcome:
        """Claim the best of the feasible nodes, if a plugin wants that; offer no other then."""
        claimants = decision.filter.claimants if decision.filter else []
        if not claimants or not len(outcome.feasible):
            return outcome
        if self._state.has_ended(request.pod.uid):
            return outcome  # no bind will come that could end the claim
        chosen = await self._choose(request.on(outcome.feasible), decision)
        (node,) = chosen.names
        self._state.claim(self._state.pod(request.pod.uid) or request.pod, node)
        decision.claim = ClaimRecord(node=node, plugins=claimants)
        self._metrics.claimed("taken")
        return replace(outcome, feasible=chosen)

    def release(self, uid: str) -> None:
        """Give up what an earlier attempt claimed; a bind that has come keeps its place."""
        self._state.release(uid)

    def holds(self, call: BindCall, decision: Decision | None) -> bool:
        """Whether the pod may be bound as it is: its claim holds, or nobody wanted one."""
        pod = self._state.pod(call.uid)
        if not self._claimants(pod):
            return True
        if self._state.place_of(call.uid) == call.node:
            return True
        return (
            decision is not None and decision.filter is not None and (not decision.filter.claimants)
        )

    async def wait_for_pod(self, call: BindCall) -> None:
        """Wait until the watch has shown the pod, but not long."""
        end = asyncio.get_running_loop().time() + UNKNOWN_SECONDS
        known = lambda: self._state.pod(call.uid) is not None  # noqa: E731
        await wait_for(self._state, known, min(call.deadline - ANSWER_SECONDS, end))

    async def renew(self, call: BindCall, decision: Decision | None) -> None:
        """Claim the node again, as long as the plugins that want claims still let it pass.

        Raises:
            CallFailedError: They do not, or cannot be asked.
        """
        pod = self._state.pod(call.uid)
        if pod is None:
            raise CallFailedError("pod is not known to Moorage, so its claim is not either")
        claimants = [name for name in self._claimants(pod) if await self._claims(name, pod, call)]
        if not claimants:
            return
        self._state.claim(pod, call.node)
        self._metrics.claimed("renewed")
        if decision is not None:
            decision.claim = ClaimRecord(node=call.node, plugins=claimants, renewed=True)

    async def _claims(self, plugin: str, pod: Pod, call: BindCall) -> bool:
        """Ask a plugin about the node again; return whether it wants it claimed."""
        request = CycleRequest(
            pod=pod,
            pod_json=encode(pod),
            nodes=NodeSet([call.node]),
            plugin=plugin,
            deadline=call.deadline,
        )
        result = await self._filter_phase.run(request)
        if not len(result.outcome.feasible):
            self._metrics.claimed("refused")
            reasons = {**result.outcome.failed, **result.outcome.unresolvable}
            raise CallFailedError(f"the claim was lost, and {plugin} rejects: {reasons[call.node]}")
        return bool(result.record.claimants)

    def _claimants(self, pod: Pod | None) -> Sequence[str]:
        """Return the plugins of the pod's profile that may want claims; of all, if not known."""
        return self._policy.dependencies.claimants(pod.spec.scheduler_name if pod else None)

    async def _choose(self, request: CycleRequest, decision: Decision) -> NodeSet:
        """Return the best node; equally good ones are spread over the pods."""
        count = len(request.nodes)
        best = np.arange(count)
        if count > 1 and request.profile in self._policy.dependencies.scores:
            try:
                result = await self._score_phase.run(request)
            except CallFailedError as error:
                decision.score_error = str(error)
            else:
                decision.score, totals = result.record, result.totals
                self._cycle_states.add(request.pod.uid, result.cycle_state)
                if totals is not None:
                    best = np.flatnonzero(totals == totals.max())
        chosen = np.zeros(count, np.bool_)
        chosen[best[crc32(request.pod.uid.encode()) % len(best)]] = True
        return request.nodes.restricted(chosen)
