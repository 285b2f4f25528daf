"""Prefers idle nodes, like kube-scheduler's NodeResourcesFit with the strategy LeastAllocated."""

import numpy as np

from moorage import MAX_SCORE, Amounts, Arguments, Nodes, Pod, Scope, ScorePlugin, Scores
from moorage.in_tree.scores.resources import (
    CPU_AND_MEMORY,
    ResourceSpec,
    requested_with,
    that_count,
)
from moorage.plugin.pod_fields import REQUEST_FIELDS


class NodeResourcesLeastAllocated(ScorePlugin):
    """Prefers nodes whose resources are least requested, this pod included."""

    depends_on = Scope.NODE
    pod_fields = REQUEST_FIELDS

    class Args(Arguments):
        """The resources to look at, by default CPU and memory alike."""

        resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return the mean by weight of what would be free, in whole percent."""
        total = np.zeros(nodes.rows.size, np.int64)
        weights: Amounts | int = 0  # one number as long as all nodes have all resources
        for resource in that_count(self.args.resources, pod):
            allocatable = nodes.allocatable(resource.name)
            free = allocatable - requested_with(resource.name, pod, nodes)
            if np.minimum.reduce(allocatable, initial=1) > 0:
                weights = weights + resource.weight
            else:
                weights = weights + resource.weight * (allocatable > 0)
                allocatable = np.maximum(allocatable, 1)
            percent = np.maximum(free, 0) * MAX_SCORE // allocatable
            total += percent if resource.weight == 1 else resource.weight * percent
        divisor = max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1)
        return (total // divisor).astype(np.float64)
