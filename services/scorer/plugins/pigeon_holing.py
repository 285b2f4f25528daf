"""Places pods where the cluster as a whole comes out best, like IBM's kube-safe-scheduler."""

from typing import Annotated, Final, Literal

import numpy as np

from moorage import MAX_SCORE, Arguments, Meta, Nodes, Pod, Preparation, ScorePlugin, Scores
from moorage.measurements import fill_missing, mark_missing
from services.scorer.plugins.objectives import coefficient, deviations, indecision, variations

LEAST_DEMAND: Final = {"cpu": 10, "memory": 16 * 1024**2}
"""What pods count as that request none."""

LEAST_SCORE: Final = 10.0
"""The score of the worst node on which the pod fits."""

SAME: Final = 1e-9
"""Objectives that differ by less are alike."""


class PigeonHoling(ScorePlugin):
    """Prefers nodes with which the cluster meets an objective best: adapts, spreads or packs."""

    class Args(Arguments):
        """What to aim at.

        Attributes:
            policy_objective: "A_BINPACK" makes the use of nodes vary as much as requests do,
                "LOAD_BALANCE" as little as possible; "CONSOLIDATE" fills nodes or leaves them
                empty.
            resources: What has to fit, and what A_BINPACK looks at.
            policy_resource_index: Which of them the other objectives look at, counted from 0.
            demand_history: How many pods' requests A_BINPACK keeps.
        """

        policy_objective: Literal["A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE"] = "A_BINPACK"
        resources: Annotated[tuple[str, ...], Meta(min_length=1)] = ("cpu", "memory")
        policy_resource_index: Annotated[int, Meta(ge=0)] = 0
        demand_history: Annotated[int, Meta(ge=1)] = 100

        def __post_init__(self) -> None:
            if self.policy_resource_index >= len(self.resources):
                raise ValueError("policyResourceIndex is not that of one of the resources")

    def __init__(self, args: Arguments | None = None) -> None:
        """Take the arguments, and begin with an empty history."""
        super().__init__(args)
        self._seen = 0
        self._newest = ""
        self._varies = 0.0
        self._demand: Scores = np.zeros(len(self.args.resources))
        self._demand_squared: Scores = np.outer(self._demand, self._demand)

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Record the pod's requests once, however often it is scored."""
        if self.args.policy_objective != "A_BINPACK":
            return None
        if pod.uid != self._newest:
            self._record(self._demand_of(pod))
            self._newest = pod.uid
        capacity = [nodes.cluster.allocatable(r).mean() for r in self.args.resources]
        self._varies = self._variation_of_demand(np.array(capacity, np.float64))
        return None

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return the objective for the whole cluster with the pod on each node; less is better.

        For A_BINPACK it is how much the use of nodes varies: replicas that each score some of the
        nodes need not agree on what pods have asked for.
        """
        cluster, resources = nodes.cluster, self.args.resources
        demand = self._demand_of(pod)
        capacity = np.array([cluster.allocatable(r) for r in resources], np.float64)
        requested = np.array([cluster.requested(r) for r in resources], np.float64)
        here = np.searchsorted(cluster.rows, nodes.rows)
        fits = np.all(requested[:, here] + demand[:, np.newaxis] <= capacity[:, here], axis=0)
        used, added = _share(requested, capacity), _share(demand[:, np.newaxis], capacity)
        if self.args.policy_objective == "A_BINPACK":
            objective = variations(used, added[:, here], here)
        else:
            index = self.args.policy_resource_index
            balance = self.args.policy_objective == "LOAD_BALANCE"
            measure = deviations if balance else indecision
            objective = measure(used[index], added[index, here], here)
        return mark_missing(np.where(fits, objective, np.nan), "worst")

    def normalize(self, scores: Scores) -> Scores:
        """Give 100 to the best, 10 to the worst, and 0 to nodes on which the pod does not fit."""
        return fill_missing(scores, "worst", lambda known: _spread(self.missed(known)))

    def missed(self, scores: Scores) -> Scores:
        """Return by how much nodes with these scores, on which the pod fits, miss the objective."""
        if self.args.policy_objective == "A_BINPACK":
            return np.abs(scores - self._varies)
        return scores

    def _demand_of(self, pod: Pod) -> Scores:
        return np.array([_demand(pod, resource) for resource in self.args.resources], np.float64)

    def _record(self, demand: Scores) -> None:
        self._seen = min(self._seen + 1, self.args.demand_history)
        self._demand += (demand - self._demand) / self._seen
        self._demand_squared += (np.outer(demand, demand) - self._demand_squared) / self._seen

    def _variation_of_demand(self, capacity: Scores) -> float:
        scale = 1 / np.maximum(capacity, 1)
        mean = self._demand * scale
        covariance = self._demand_squared * np.outer(scale, scale) - np.outer(mean, mean)
        return float(coefficient(mean @ covariance @ mean, mean @ mean))


def _demand(pod: Pod, resource: str) -> int:
    if resource == "pods":
        return 1
    return pod.requests.get(resource, 0) or LEAST_DEMAND.get(resource, 0)


def _share(amounts: Scores, capacity: Scores) -> Scores:
    return np.where(capacity > 0, np.minimum(amounts / np.maximum(capacity, 1), 1), 0)


def _spread(objectives: Scores) -> Scores:
    best, worst = objectives.min(), objectives.max()
    if worst - best < SAME:
        return np.full(len(objectives), float(MAX_SCORE))
    share: Scores = (worst - objectives) / (worst - best)
    return LEAST_SCORE + (MAX_SCORE - LEAST_SCORE) * share
