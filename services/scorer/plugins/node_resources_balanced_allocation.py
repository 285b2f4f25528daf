"""Prefers nodes that stay balanced, like kube-scheduler's plugin of the same name."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import numpy as np

from moorage import (
    MAX_SCORE,
    SKIP,
    Amounts,
    Arguments,
    Meta,
    Nodes,
    Pod,
    Preparation,
    ScorePlugin,
    Scores,
)
from services.scorer.plugins.resources import CPU_AND_MEMORY, ResourceSpec, that_count


class NodeResourcesBalancedAllocation(ScorePlugin):
    """Prefers nodes on which the pod evens out how much of each resource is requested."""

    class Args(Arguments):
        """The resources to balance, and whose formula.

        Attributes:
            resources: By default CPU and memory. Their weights do not count, as in kube-scheduler.
            form: "1.36" scores how much the pod improves the balance (75: not at all) and skips
                pods that request nothing; "older" scores the balance with the pod.
        """

        resources: Annotated[tuple[ResourceSpec, ...], Meta(min_length=1)] = CPU_AND_MEMORY
        form: Literal["1.36", "older"] = "1.36"

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods that request none of the resources."""
        idle = not any(pod.requests.get(resource.name) for resource in self.args.resources)
        return SKIP if idle and self.args.form == "1.36" else None

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return 0..100 by how balanced the node is, in whole numbers."""
        names = [resource.name for resource in that_count(self.args.resources, pod)]
        allocatable = [nodes.allocatable(name) for name in names]
        before = [nodes.requested(name) for name in names]
        requests = [pod.requests.get(name, 0) for name in names]
        after = [column + request for column, request in zip(before, requests, strict=True)]
        balance = _balance(after, allocatable, len(nodes))
        if self.args.form == "1.36":
            gain = balance - _balance(before, allocatable, len(nodes))
            balance = MAX_SCORE // 2 + (MAX_SCORE // 2 + gain) // 2
        return balance.astype(np.float64)


def _balance(requested: Sequence[Amounts], allocatable: Sequence[Amounts], count: int) -> Amounts:
    """Return 100 for nodes with equal shares of all resources, less the more they differ."""
    if not requested:
        return np.full(count, MAX_SCORE, np.int64)
    pairs = zip(requested, allocatable, strict=True)
    shares = [np.minimum(asked / np.maximum(amount, 1), 1.0) for asked, amount in pairs]
    if all(np.count_nonzero(amount > 0) == count for amount in allocatable):
        deviation = _deviation(shares, count)
    else:  # resources that a node does not have do not count there
        deviation, table = np.zeros(count), np.stack(shares)
        present = np.stack(allocatable) > 0
        for pattern in np.unique(present, axis=1).T:
            same = (present == pattern[:, np.newaxis]).all(axis=0)
            deviation[same] = _deviation(table[np.ix_(pattern, same)], int(same.sum()))
    return ((1 - deviation) * MAX_SCORE).astype(np.int64)


def _deviation(shares: Sequence[Scores] | Scores, count: int) -> Scores:
    """Return the standard deviation for each node, with kube-scheduler's rounding errors."""
    deviation: Scores = np.zeros(count)
    if len(shares) == 2:
        deviation = np.abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        mean = _sum(shares) / len(shares)
        deviation = np.sqrt(_sum((share - mean) * (share - mean) for share in shares) / len(shares))
    return deviation


def _sum(columns: Iterable[Scores]) -> Scores:
    """Add in order: numpy's own sum may round otherwise."""
    first, *rest = columns
    total: Scores = first
    for column in rest:
        total = total + column
    return total
