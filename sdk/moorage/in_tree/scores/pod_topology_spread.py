"""Prefers an even spread of pods, like the score of kube-scheduler's plugin of the same name."""

import math

import numpy as np

from moorage import MAX_SCORE, SKIP, Amounts, Mask, Nodes, Pod, Preparation, ScorePlugin, Scores
from moorage.in_tree.shared import (
    HOSTNAME,
    SpreadArguments,
    has_labels,
    is_eligible,
    matching_pods,
    spread_constraints,
)
from moorage.models import TopologySpreadConstraint

IGNORED = -1
"""The raw score of nodes that lack a label, which get 0 points."""

Constraints = tuple[TopologySpreadConstraint, ...]


class PodTopologySpread(ScorePlugin):
    """Prefers domains with few matching pods, by the pod's soft constraints or the default ones.

    How much a domain counts depends on how many there are among the nodes to be scored.
    """

    class Args(SpreadArguments):  # noqa: D106 - inherited, as the documentation shows
        pass

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Count the domains of all nodes to be scored; skip pods without soft constraints."""
        constraints = self._constraints(pod)
        if not constraints:
            return SKIP
        scored = self._counted(pod, nodes, constraints)
        self._domains = [_count_domains(nodes, c.topology_key, scored) for c in constraints]
        return None

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Add up matching pods by domain, weighted by the logarithm of the number of domains."""
        constraints, cluster = self._constraints(pod), nodes.cluster
        scored = self._counted(pod, nodes, constraints)
        counted = self._counted(pod, cluster, constraints)
        total = np.zeros(len(nodes))
        for constraint, domains in zip(constraints, self._domains, strict=True):
            if constraint.topology_key == HOSTNAME:
                pods = matching_pods(nodes, constraint, pod)
            else:
                pods = _by_domain(constraint, pod, nodes, cluster, counted)
            cost = pods * math.log(domains + 2) + (constraint.max_skew - 1)
            total += np.where(nodes.label(constraint.topology_key).isin((None,)), 0, cost)
        return np.where(scored, _rounded(total), IGNORED)

    def normalize(self, scores: Scores) -> Scores:
        """Give 100 to the lowest cost, unless all cost nothing, and less the higher it is."""
        scored = scores != IGNORED
        highest = scores.max(initial=0)
        lowest = scores.min(initial=np.inf, where=scored)
        if highest == 0:
            return np.where(scored, MAX_SCORE, 0)
        return np.where(scored, MAX_SCORE * (highest + lowest - scores) // highest, 0)

    def _constraints(self, pod: Pod) -> Constraints:
        return spread_constraints(pod, "ScheduleAnyway", self.args)

    def _counted(self, pod: Pod, nodes: Nodes, constraints: Constraints) -> Mask:
        """Return which nodes count: those with all labels, or all for the system's defaults."""
        if pod.spec.topology_spread_constraints or self.args.defaulting_type == "List":
            return has_labels(nodes, constraints)
        return nodes.verdicts().passed


def _count_domains(nodes: Nodes, topology_key: str, scored: Mask) -> int:
    if topology_key == HOSTNAME:
        return int(scored.sum())
    return len(np.unique(nodes.label(topology_key).codes[scored]))


def _by_domain(
    constraint: TopologySpreadConstraint, pod: Pod, nodes: Nodes, cluster: Nodes, counted: Mask
) -> Amounts:
    counted = counted & is_eligible(cluster, constraint, pod)
    matching = matching_pods(cluster, constraint, pod) * counted
    return nodes.by_domain(constraint.topology_key, matching)


def _rounded(scores: Scores) -> Scores:
    """Round 0.5 up, as Go does; numpy would round them to even."""
    whole = np.floor(scores)
    return whole + (scores - whole >= 0.5)
