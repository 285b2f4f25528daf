"""Prefers the nodes that pods wish for, like kube-scheduler's plugin of the same name."""

import numpy as np

from moorage import SKIP, Nodes, Normalization, Pod, Preparation, Scope, ScorePlugin, Scores
from moorage.models import PreferredSchedulingTerm


class NodeAffinity(ScorePlugin):
    """Prefers nodes that match the pod's preferred node affinity."""

    depends_on = Scope.NODE
    reads_placements = False  # it reads manifests only
    pod_fields = ("spec.affinity.nodeAffinity",)
    normalization = Normalization.MAXIMUM

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods without wishes."""
        return None if _preferred(pod) else SKIP

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Add up the weights of the terms that each node matches."""
        total = np.zeros(len(nodes))
        for term in _preferred(pod):
            if term.weight:
                total += term.weight * nodes.matching(term.preference)
        return total


def _preferred(pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = pod.spec.affinity
    return affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()
