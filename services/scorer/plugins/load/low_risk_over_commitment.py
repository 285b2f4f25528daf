"""Avoids nodes where limits exceed the node's size, like the plugin of trimaran."""

from typing import Annotated

import numpy as np
from msgspec import field

from moorage import MAX_SCORE, SKIP, Arguments, Meta, Nodes, Pod, Preparation, Scores
from moorage.measurements.load import LoadArguments, LoadScorePlugin, Resource
from moorage.measurements.risk import Limits, probability_below

Weight = Annotated[float, Meta(ge=0, le=1)]


class RiskLimitWeights(Arguments):
    """How much the risk of limits counts beside the risk of the measured load, 0..1."""

    cpu: Weight = 0.5
    memory: Weight = 0.5


class LowRiskOverCommitment(LoadScorePlugin):
    """Prefers nodes on which pods are unlikely to want more than there is, within their limits."""

    class Args(LoadArguments):
        """How risks are weighed.

        Attributes:
            smoothing_window_size: By how many samples the measured variation is smoothed.
            risk_limit_weights: How much the risk of limits counts beside that of the load, 0..1.
        """

        smoothing_window_size: Annotated[int, Meta(ge=1)] = 5
        risk_limit_weights: RiskLimitWeights = field(default_factory=RiskLimitWeights)

    def __init__(self, args: Arguments | None = None) -> None:
        super().__init__(args)
        self._limits = Limits()

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods without requests and limits: they are the first to yield, on any node."""
        return None if any(self._limits.of_pod(pod)) else SKIP

    def rate(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return 100 without risk."""
        limits = self._limits.of_nodes(nodes)
        own = self._limits.of_pod(pod)
        cpu = self._risk(pod, nodes, "cpu", limits[0], own[0])
        memory = self._risk(pod, nodes, "memory", limits[1], own[1])
        return MAX_SCORE * (1 - np.fmax(cpu, memory))

    def _risk(
        self, pod: Pod, nodes: Nodes, resource: Resource, limits: Scores, limit: int
    ) -> Scores:
        load = self.source.load(nodes, resource)
        requested = nodes.requested(resource).astype(np.float64)
        mean, deviation = load.mean_with(0), load.deviation_share
        deviation = deviation * np.sqrt(self.args.smoothing_window_size)
        deviation = np.minimum(deviation, np.sqrt(0.99 * mean * (1 - mean)))
        within = probability_below(_share(requested, load.capacity), mean, deviation)
        bounded = (limits < load.capacity) & (requested <= limits)
        reachable = probability_below(_share(limits, load.capacity), mean, deviation)
        scale = np.where(bounded & (reachable > 0), reachable, 1)
        risk_of_load = 1 - np.minimum(within / scale, 1)
        wanted = np.minimum(requested + pod.requests.get(resource, 0), load.capacity)
        excess = np.maximum(limits + limit - load.capacity, 0)
        risk_of_limits = np.where(excess > 0, excess / np.maximum(limits + limit - wanted, 1), 0)
        weight: float = getattr(self.args.risk_limit_weights, resource)
        return weight * risk_of_limits + (1 - weight) * risk_of_load


def _share(amount: Scores, capacity: Scores) -> Scores:
    return np.minimum(amount / np.maximum(capacity, 1), 1)
