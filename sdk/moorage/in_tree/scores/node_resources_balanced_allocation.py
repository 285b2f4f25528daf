"""Prefers nodes that stay balanced, like kube-scheduler's plugin of the same name."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from moorage import (
    MAX_SCORE,
    SKIP,
    Amounts,
    Arguments,
    Meta,
    Nodes,
    Pod,
    Preparation,
    Scope,
    ScorePlugin,
    Scores,
)
from moorage.in_tree.scores.resources import CPU_AND_MEMORY, ResourceSpec, that_count
from moorage.plugin.pod_fields import REQUEST_FIELDS


class NodeResourcesBalancedAllocation(ScorePlugin):
    """Prefers nodes on which the pod evens out how much of each resource is requested."""

    depends_on = Scope.NODE
    pod_fields = REQUEST_FIELDS

    class Args(Arguments):
        """The resources to balance, and whose formula.

        Attributes:
            resources: By default CPU and memory. Their weights do not count, as in kube-scheduler.
            form: "1.36" scores how much the pod improves the balance (75: not at all) and skips
                pods that request nothing; "older" scores the balance.
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
        balance_of = _Balance(allocatable, len(nodes))
        balance = balance_of(after)
        if self.args.form == "1.36":
            gain = balance - balance_of(before)
            balance = MAX_SCORE // 2 + (MAX_SCORE // 2 + gain) // 2
        return balance.astype(np.float64)


class _Balance:
    """Gives 100 to nodes with equal shares of all resources, less the more they differ."""

    def __init__(self, allocatable: Sequence[Amounts], count: int) -> None:
        self._count = count
        self._everywhere = all(np.minimum.reduce(a, initial=1) > 0 for a in allocatable)
        self._allocatable = allocatable
        self._divisors = (
            allocatable if self._everywhere else [np.maximum(a, 1) for a in allocatable]
        )

    def __call__(self, requested: Sequence[Amounts]) -> Amounts:
        if not requested:
            return np.full(self._count, MAX_SCORE, np.int64)
        pairs = zip(requested, self._divisors, strict=True)
        shares = [np.minimum(amounts / divisors, 1.0) for amounts, divisors in pairs]
        if self._everywhere:
            deviation = _deviation(shares, self._count)
        else:
            deviation = self._deviation_of_present(np.stack(shares))
        return ((1 - deviation) * MAX_SCORE).astype(np.int64)

    def _deviation_of_present(self, shares: npt.NDArray[np.float64]) -> Scores:
        """Leave out at each node the resources that it does not have."""
        deviation, present = np.zeros(self._count), np.stack(self._allocatable) > 0
        for pattern in np.unique(present, axis=1).T:
            same = (present == pattern[:, np.newaxis]).all(axis=0)
            deviation[same] = _deviation(shares[np.ix_(pattern, same)], int(same.sum()))
        return deviation


def _deviation(shares: Sequence[Scores] | Scores, count: int) -> Scores:
    """Return the standard deviation for each node, with kube-scheduler's rounding errors."""
    if len(shares) < 2:
        return np.zeros(count)
    deviation: Scores
    if len(shares) == 2:
        deviation = np.abs((shares[0] - shares[1]) / 2)
    else:
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
