"""Gives all nodes the same score: the EqualPriority of old scheduler policies."""

import numpy as np

from moorage import Nodes, Pod, Scope, ScorePlugin, Scores


class Equal(ScorePlugin):
    """Gives all nodes the same score, so that the others decide; for policies that name it."""

    depends_on = Scope.NODE
    reads_placements = False  # it reads nothing
    pod_fields = ()

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return 1 for each node, as EqualPriority did."""
        return np.ones(len(nodes))
