"""Counts pods that are nominated for a node, but not on it yet, in the verdicts on other pods.

kube-scheduler writes `status.nominatedNodeName` when it evicts pods for another one, and before a
long Permit or PreBind. Until the bind such a pod has no place, and kube-scheduler may still take it
elsewhere. So a node is feasible for a pod only if the filters let it pass twice: as the node is,
and with the pods on it that are nominated for it and not less important. kube-scheduler's own
filters do the same. The first answer may come from the cache. The second question is about those
nodes alone, and nothing is asked where no pod is nominated.

Binds count no nominated pods: two pods may be nominated for one node, and one of them must win.
Called by `gateway.scheduling.scheduler` after the filters were asked.
"""

import numpy as np
from msgspec.structs import replace

from gateway.cluster.placements import placed
from gateway.cluster.state import ClusterState
from gateway.cycle import Cycle, Judge
from gateway.cycle.answers import UNKNOWN_NODE_CODE, PhaseVerdicts
from gateway.cycle.nodes import Mask
from moorage.models import Pod


class NominatedPods:
    """Asks filter plugins once more about nodes that other pods are nominated for."""

    def __init__(self, state: ClusterState, judge: Judge) -> None:
        """Count the nominated pods of *state*; *judge* asks filter plugins."""
        self._state = state
        self._judge = judge

    async def judge(self, cycle: Cycle) -> PhaseVerdicts:
        """Return the verdicts on the nodes of a cycle; raises CallFailedError."""
        verdicts = await self._judge(cycle)
        return await self.count(cycle, verdicts) if self._state.nominated else verdicts

    async def count(self, cycle: Cycle, verdicts: PhaseVerdicts) -> PhaseVerdicts:
        """Return *verdicts* with nominated pods counted; raises CallFailedError."""
        pods = self._before(cycle.pod) if verdicts.record.feasible else []
        if not pods:
            return verdicts
        names, on = cycle.nodes.names, {pod.spec.node_name for pod in pods}
        again: Mask = verdicts.rows.to_call_order(verdicts.codes, UNKNOWN_NODE_CODE) == 0
        if verdicts.group is None:  # a group is placed on all its nodes at once
            again &= np.fromiter((name in on for name in names), np.bool_, len(names))
            nodes = cycle.nodes.restricted(again)
            on = set(nodes.names)
        else:
            nodes = cycle.nodes.restricted(again)
        if not len(nodes):
            return verdicts
        added = [pod for pod in pods if pod.spec.node_name in on]
        asked = replace(cycle, nodes=nodes, added_pods=added)
        return _both(verdicts, await self._judge(asked), again)

    def _before(self, pod: Pod) -> list[Pod]:
        """Return the pods that count for another, each as on its node, important ones first."""
        state, found = self._state, []
        for uid, node in state.nominated.items():
            if uid == pod.uid or node not in state.rows.of or uid in state.places:
                continue
            other = state.pods[uid]
            if other.spec.priority >= pod.spec.priority:
                found.append(placed(other, node))
        return sorted(found, key=lambda other: -other.spec.priority)


def _both(first: PhaseVerdicts, second: PhaseVerdicts, again: Mask) -> PhaseVerdicts:
    """Return verdicts by which a node is feasible if it is by both; *second* is about some nodes.

    Args:
        first: The verdicts on all nodes.
        second: Those on nodes that are feasible by *first*.
        again: Which nodes these are, in the order of the call.
    """
    numbers = {reason: number for number, reason in enumerate(first.reasons, start=1)}
    known = [numbers.setdefault(each, len(numbers) + 1) for each in second.reasons]
    found = np.array([0, *known], np.uint16)[second.codes]
    codes = first.codes.copy()
    # A node that has gone in between keeps its verdict.
    codes[np.searchsorted(first.rows.rows, first.rows.by_position[again])] = (
        second.rows.to_call_order(found, 0)
    )
    record = first.record
    failures = {each.plugin: each.failure for each in second.record.plugins}
    for plugin in record.plugins:
        plugin.failure = plugin.failure or failures.get(plugin.plugin, "")
    record.seconds += second.record.seconds
    record.nominated_nodes = second.rows.count
    first.codes, first.reasons = codes, list(numbers)
    first.generation = min(first.generation, second.generation)
    if second.group is not None:
        first.group, first.found, first.kept = second.group, second.found, second.kept
    first.count()
    return first
