"""Prefers idle and steady nodes, like the plugin of the same name in trimaran."""

from typing import Annotated

import numpy as np

from moorage import MAX_SCORE, Meta, Nodes, Pod, Scores
from moorage.measurements.load import LoadArguments, LoadScorePlugin, Resource


class LoadVariationRiskBalancing(LoadScorePlugin):
    """Prefers nodes on which mean and variation of the load, with the pod, are low."""

    class Args(LoadArguments):
        """How much variation counts.

        Attributes:
            safe_variance_margin: What the deviation is multiplied by.
            safe_variance_sensitivity: The root of the deviation that counts: 2 makes small ones
                count more.
        """

        safe_variance_margin: Annotated[float, Meta(ge=0)] = 1.0
        safe_variance_sensitivity: Annotated[float, Meta(gt=0)] = 1.0

    def rate(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return the lower of the scores by CPU and by memory, in whole numbers."""
        lower = np.fmin(self._score(pod, nodes, "cpu"), self._score(pod, nodes, "memory"))
        return np.floor(lower + 0.5)

    def _score(self, pod: Pod, nodes: Nodes, resource: Resource) -> Scores:
        load = self.source.load(nodes, resource)
        root = 1 / self.args.safe_variance_sensitivity
        variation = self.args.safe_variance_margin * load.deviation_share**root
        mean = load.mean_with(pod.requests.get(resource, 0))
        return MAX_SCORE * (1 - (mean + np.clip(variation, 0, 1)) / 2)
