"""Claims: pods that hold a node from their cycle on, before kube-scheduler binds them.

The extender protocol does not name the chosen node before the bind, and the next pods are filtered
before that. Where a plugin's verdicts depend on it, the gateway chooses the node in the cycle.
Called by `gateway.scheduling.scheduler`, cycle by cycle, so that no two claims contradict each
other. A claim that is lost before its bind makes `gateway.scheduling.bind_check` ask again.
"""

import math

import numpy as np

from gateway.cluster.pods import waiting_of
from gateway.cluster.state import ClusterState
from gateway.cluster.waiters import wait_a_while
from gateway.cycle import ANSWER_SECONDS, CallFailedError, Cycle, NodeSet, Rank
from gateway.cycle.answers import claimed
from gateway.cycle.cycle_states import CycleStates
from gateway.cycle.decision import ClaimRecord
from gateway.policy.policy import PolicyHolder
from gateway.scheduling.bind_check import changed_on
from gateway.scheduling.groups import Groups
from gateway.scheduling.metrics import CycleMetrics
from gateway.scheduling.reservations import Reservations


class Claims:
    """Takes claims in cycles."""

    def __init__(
        self,
        state: ClusterState,
        policy: PolicyHolder,
        rank: Rank,
        cycle_states: CycleStates,
        groups: Groups,
        reservations: Reservations,
        metrics: CycleMetrics,
        unknown_pod_wait: float,
    ) -> None:
        """Take claims of pods that *state* knows; others wait so many seconds for the watch."""
        self._state = state
        self._policy = policy
        self._rank = rank
        self._cycle_states = cycle_states
        self._groups = groups
        self._reservations = reservations
        self._metrics = metrics
        self._unknown_pod_wait = unknown_pod_wait

    async def prepare(self, cycle: Cycle) -> None:
        """Wait for a pod that may claim a node and that the watch has not shown yet."""
        state, uid = self._state, cycle.uid
        if state.pods.get(uid) is None and not state.has_ended(uid):
            end = cycle.deadline - ANSWER_SECONDS
            is_known = lambda: state.pods.get(uid) is not None  # noqa: E731
            await wait_a_while(state, is_known, self._unknown_pod_wait, end)

    async def take(self, cycle: Cycle) -> None:
        """Claim the best of the feasible nodes, and offer no other."""
        decision = cycle.decision
        group = cycle.verdicts.group if cycle.verdicts is not None else None
        if group is not None:
            await self._know_members(cycle)
        pod = self._state.pods.get(cycle.uid)
        if pod is None:
            return  # nothing would end the claim of a pod that the watch never shows
        if pod.spec.node_name:  # its caller may not have seen that
            raise CallFailedError(f"the pod is bound to node {pod.spec.node_name} already")
        chosen = (group and self._found(cycle)) or await self._choose(cycle)
        (node,) = chosen.names
        filters = self._policy.dependencies.filters.get(cycle.profile)
        # Binds do not wait for cycles: one may have put a pod there while this one was scored. A
        # call of one plugin leaves the others out.
        outdated = (
            filters is None
            or (cycle.plugin != "" and filters.count > 1)
            or changed_on(self._state, node, filters) > decision.generation
        )
        annotations = self._cycle_states.annotations(cycle.uid, node)
        failure, seconds = waiting_of(cycle.pod_json).failure, math.inf
        if group is not None:
            seconds = self._reservations.seconds(cycle, group)
        self._state.claim(pod, node, failure, seconds, annotations)
        if group is not None:
            self._reservations.take(cycle, group)
        self._groups.claimed(cycle)
        claimants = decision.filter.claimants if decision.filter else []
        decision.claim = ClaimRecord(
            node=node, plugins=claimants, outdated=outdated, annotations=dict(annotations)
        )
        self._metrics.claimed()
        cycle.claim(chosen)

    async def _know_members(self, cycle: Cycle) -> None:
        """Wait for the watch to show all pods that nodes were found for, so that all hold them."""
        state, found = self._state, cycle.verdicts.found if cycle.verdicts is not None else {}

        def are_known() -> bool:
            return all(state.pods.get(uid) is not None for uid in found)

        if not are_known():
            end = cycle.deadline - ANSWER_SECONDS
            await wait_a_while(state, are_known, self._unknown_pod_wait, end)
        if not are_known():
            raise CallFailedError("a pod of the group is gone, or not known to Moorage yet")

    def _found(self, cycle: Cycle) -> NodeSet | None:
        """Return the node that the trial placement of its group found for the pod, if it may."""
        names = cycle.feasible.names
        node = cycle.verdicts.found.get(cycle.uid, "") if cycle.verdicts is not None else ""
        chosen = np.fromiter((name == node for name in names), np.bool_, len(names))
        return cycle.feasible.restricted(chosen) if chosen.any() else None

    async def _choose(self, cycle: Cycle) -> NodeSet:
        """Return the best of the feasible nodes."""
        nodes, decision, totals = cycle.feasible, cycle.decision, None
        if len(nodes) > 1 and cycle.profile in self._policy.dependencies.scores:
            try:
                scores = await self._rank(cycle, nodes)
            except CallFailedError as error:
                decision.score_error = str(error)
            else:
                cycle.rank(scores)
                if len(scores.totals):
                    totals = scores.rows.to_call_order(scores.totals, 0)
                self._cycle_states.add(cycle.uid, scores.kept)
        chosen = np.zeros(len(nodes), np.bool_)
        chosen[claimed(cycle.uid, nodes.names, totals)] = True
        return nodes.restricted(chosen)
