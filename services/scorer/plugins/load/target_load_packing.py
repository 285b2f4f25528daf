"""Packs nodes up to a target load, like the plugin of the same name in trimaran."""

from typing import Annotated

import numpy as np
from msgspec import field

from moorage import MAX_SCORE, Arguments, Meta, Nodes, Pod, Scores
from moorage.measurements import Expected
from moorage.measurements.load import LoadArguments, LoadScorePlugin
from moorage.models import Container
from moorage.units.quantity import scaled


class DefaultRequests(Arguments):
    """What containers are taken to use that say nothing about it."""

    cpu: Annotated[str, Meta(pattern=r"^[0-9]+m?$", title='whole cores or "500m"')] = "1000m"


class TargetLoadPacking(LoadScorePlugin):
    """Prefers nodes whose CPU load, with the pod, is just below a target."""

    class Args(LoadArguments):
        """The target, and what pods are taken to use.

        Attributes:
            target_utilization: The CPU load to pack nodes up to, in percent.
            default_requests: What containers without requests and limits are taken to use.
            default_requests_multiplier: How much more than its request a container without limits
                is taken to use.
        """

        target_utilization: Annotated[float, Meta(gt=0, le=100)] = 40.0
        default_requests: DefaultRequests = field(default_factory=DefaultRequests)
        default_requests_multiplier: Annotated[float, Meta(ge=1)] = 1.5

    def __init__(self, args: Arguments | None = None) -> None:
        super().__init__(args)
        key = (self.args.default_requests.cpu, self.args.default_requests_multiplier)
        self._expected = Expected(("TargetLoadPacking", *key), self._demand)

    def rate(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return a score that rises to 100 at the target, and falls from the target's on to 0."""
        load = self.source.load(nodes, "cpu", expected=self._expected)
        expected = np.full(len(nodes), np.nan)
        known = load.capacity > 0
        expected[known] = (load.used[known] + self._demand(pod)) / load.capacity[known]
        percent, target = MAX_SCORE * expected, self.args.target_utilization
        below = (MAX_SCORE - target) * percent / target + target
        above = target * (MAX_SCORE - percent) / ((MAX_SCORE - target) or 1)
        return np.floor(np.where(percent <= target, below, np.maximum(above, 0)) + 0.5)

    def _demand(self, pod: Pod) -> float:
        overhead = scaled("cpu", pod.spec.overhead.get("cpu", 0))
        return overhead + sum(map(self._container_demand, pod.spec.containers))

    def _container_demand(self, container: Container) -> float:
        limit = container.resources.limits.get("cpu")
        if limit is not None:
            return scaled("cpu", limit)
        request = container.resources.requests.get("cpu")
        if request is not None:
            return scaled("cpu", request) * self.args.default_requests_multiplier
        return scaled("cpu", self.args.default_requests.cpu)
