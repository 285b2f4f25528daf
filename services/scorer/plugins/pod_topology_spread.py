"""Prefers an even spread of pods, like the score of kube-scheduler's plugin of the same name."""

import math

import numpy as np

from moorage import MAX_SCORE, SKIP, Amounts, Mask, Nodes, Pod, Preparation, ScorePlugin, Scores
from moorage.models import TopologySpreadConstraint
from moorage.spreading import (
    HOSTNAME,
    SpreadArguments,
    has_labels,
    is_eligible,
    matching_pods,
    spread_constraints,
)

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
        """Skip pods without soft constraints."""
        return None if self._constraints(pod) else SKIP

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Add up matching pods by domain, weighted by the logarithm of the number of domains."""
        constraints, cluster = self._constraints(pod), nodes.cluster
        scored, counted = nodes.verdicts().passed, cluster.verdicts().passed
        if pod.spec.topology_spread_constraints or self.args.defaulting_type == "List":
            scored, counted = has_labels(nodes, constraints), has_labels(cluster, constraints)
        total = np.zeros(len(nodes))
        for constraint in constraints:
            column = nodes.label(constraint.topology_key)
            if constraint.topology_key == HOSTNAME:
                domains, pods = int(scored.sum()), matching_pods(nodes, constraint, pod)
            else:
                domains = len(np.unique(column.codes[scored]))
                pods = _by_domain(constraint, pod, nodes, cluster, counted)
            cost = pods * math.log(domains + 2) + (constraint.max_skew - 1)
            total += np.where(column.isin((None,)), 0, cost)
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


def _by_domain(
    constraint: TopologySpreadConstraint, pod: Pod, nodes: Nodes, cluster: Nodes, counted: Mask
) -> Amounts:
    counted = counted & is_eligible(cluster, constraint, pod)
    matching = matching_pods(cluster, constraint, pod) * counted
    return nodes.by_domain(constraint.topology_key, matching)


def _rounded(scores: Scores) -> Scores:
    """Round halves up, as Go does; numpy would round them to even."""
    whole = np.floor(scores)
    return whole + (scores - whole >= 0.5)
