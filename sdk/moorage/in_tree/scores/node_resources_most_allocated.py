"""Prefers busy nodes, like kube-scheduler's NodeResourcesFit with the strategy MostAllocated."""

import numpy as np

from moorage import MAX_SCORE, Arguments, Nodes, Pod, Scope, ScorePlugin, Scores
from moorage.in_tree.scores.resources import (
    CPU_AND_MEMORY,
    ResourceSpec,
    requested_with,
    that_count,
)
from moorage.plugin.pod_fields import REQUEST_FIELDS


class NodeResourcesMostAllocated(ScorePlugin):
    """Prefers nodes whose resources are most requested, this pod included, so that others empty."""

    depends_on = Scope.NODE
    pod_fields = REQUEST_FIELDS

    class Args(Arguments):
        """The resources to look at, by default CPU and memory alike."""

        resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return the mean by weight of what would be requested, in whole percent."""
        total = np.zeros(len(nodes), np.int64)
        weights = np.zeros(len(nodes), np.int64)
        for resource in that_count(self.args.resources, pod):
            allocatable = nodes.allocatable(resource.name)
            used = np.minimum(requested_with(resource.name, pod, nodes), allocatable)
            total += resource.weight * (used * MAX_SCORE // np.maximum(allocatable, 1))
            weights += resource.weight * (allocatable > 0)
        return (total // np.maximum(weights, 1)).astype(np.float64)
