"""Prefers idle and steady nodes, like IBM's kube-safe-scheduler."""

import numpy as np

from moorage import MAX_SCORE, Nodes, Pod, Scores
from moorage.measurements.load import LoadScorePlugin, Resource
from moorage.measurements.risk import SafeArguments


class SafeBalance(LoadScorePlugin):
    """Prefers nodes whose load, with the pod, is low and steady."""

    class Args(SafeArguments):
        """What counts as overload, and where to learn how busy nodes are."""

    def rate(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return the lower of the scores by CPU and by memory."""
        return np.fmin(self._score(pod, nodes, "cpu"), self._score(pod, nodes, "memory"))

    def _score(self, pod: Pod, nodes: Nodes, resource: Resource) -> Scores:
        weight = self.args.safe_forecast_weight / 100
        load = self.source.load(nodes, resource, forecast_weight=weight)
        mean = load.mean_with(pod.requests.get(resource, 0))
        return MAX_SCORE * (1 - (mean + np.sqrt(load.deviation_share)) / 2)
