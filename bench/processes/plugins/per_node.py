"""The first three filters and scores of the bench in the per-node form.

Written in plain Python: nothing is kept from one node to the next.
"""

import numpy as np

from moorage import (
    MAX_SCORE,
    FilterPlugin,
    Node,
    Pod,
    Rejection,
    ScorePlugin,
    Scores,
    normalize_by_maximum,
)
from moorage.rules.taints import DO_NOT_SCHEDULE, PREFER_NO_SCHEDULE, count_untolerated, untolerated

CPU_AND_MEMORY = ("cpu", "memory")
IDLE = {"cpu": 100, "memory": 200 * 1024 * 1024}
"""What a pod that requests nothing counts as, as in kube-scheduler."""


class TaintFilter(FilterPlugin):
    """Keeps pods off nodes with taints."""

    name = "PerNodeTaintToleration"

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Look for a taint that the pod does not tolerate."""
        if untolerated(node.taints, pod.spec.tolerations, DO_NOT_SCHEDULE):
            return Rejection("node(s) had untolerated taint(s)")
        return None


class SelectorFilter(FilterPlugin):
    """Keeps pods on nodes that have the labels of their nodeSelector."""

    name = "PerNodeNodeAffinity"

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Compare label by label."""
        labels = node.labels
        for key, value in pod.spec.node_selector.items():
            if labels.get(key) != value:
                return Rejection("node(s) didn't match Pod's node affinity/selector")
        return None


class FitFilter(FilterPlugin):
    """Keeps pods off nodes that are full."""

    name = "PerNodeNodeResourcesFit"

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Compare resource by resource."""
        allocatable, requested = node.allocatable, node.requested
        if requested.get("pods", 0) >= allocatable.get("pods", 0):
            return Rejection("Too many pods")
        for resource, amount in pod.requests.items():
            if amount > allocatable.get(resource, 0) - requested.get(resource, 0):
                return Rejection(f"Insufficient {resource}")
        return None


class TaintScore(ScorePlugin):
    """Prefers nodes without taints."""

    name = "PerNodeTaintToleration"

    def score_node(self, pod: Pod, node: Node) -> float:
        """Count the taints that the pod does not tolerate."""
        return count_untolerated(node.taints, pod.spec.tolerations, PREFER_NO_SCHEDULE)

    def normalize(self, scores: Scores) -> Scores:
        """Give 100 to nodes without."""
        return normalize_by_maximum(scores, reverse=True)


class FreeScore(ScorePlugin):
    """Prefers idle nodes; a node's own requests count as they are."""

    name = "PerNodeNodeResourcesLeastAllocated"

    def score_node(self, pod: Pod, node: Node) -> float:
        """Return the mean of what would be free, in percent."""
        allocatable, requested = node.allocatable, node.requested
        free = 0.0
        for resource in CPU_AND_MEMORY:
            wanted = pod.requests.get(resource, IDLE[resource]) + requested.get(resource, 0)
            free += max(1 - wanted / allocatable[resource], 0)
        return free * MAX_SCORE / len(CPU_AND_MEMORY)


class BalanceScore(ScorePlugin):
    """Prefers nodes on which CPU and memory are used alike."""

    name = "PerNodeNodeResourcesBalancedAllocation"

    def score_node(self, pod: Pod, node: Node) -> float:
        """Return 100 less the standard deviation of both shares."""
        allocatable, requested = node.allocatable, node.requested
        cpu, memory = (
            min((pod.requests.get(r, 0) + requested.get(r, 0)) / allocatable[r], 1)
            for r in CPU_AND_MEMORY
        )
        return float((1 - np.abs(cpu - memory) / 2) * MAX_SCORE)
