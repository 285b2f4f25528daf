"""Avoids nodes that a pod would likely overload, like IBM's kube-safe-scheduler."""

import numpy as np

from moorage import MAX_SCORE, Nodes, Pod, Scores
from moorage.measurements.load import LoadScorePlugin
from moorage.measurements.risk import SafeArguments, overload_risk


class SafeOverload(LoadScorePlugin):
    """Prefers nodes that the pod is unlikely to overload."""

    class Args(SafeArguments):
        """What counts as overload, and where to learn how busy nodes are."""

    def rate(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return 100 without risk, 0 at the highest tolerable risk and above."""
        risk = overload_risk(self.source, self.args, pod, nodes)
        tolerable = max(self.args.safe_percentile / 100, np.finfo(np.float64).tiny)
        return MAX_SCORE * (1 - np.sqrt(np.minimum(risk / tolerable, 1)))
