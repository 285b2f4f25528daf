"""Counts images that nodes have, like the extender image_score of IBM's article."""

from collections.abc import Callable

import numpy as np

from moorage import MAX_SCORE, Nodes, Pod, Scope, ScorePlugin, Scores

MOST = 10
"""The highest score of an extender; more containers than this share the scale."""


class ImageScore(ScorePlugin):
    """Prefers nodes that have the images of more containers, regardless of their sizes.

    A container counts where its image is part of some image's name: "nginx" of "nginx:1.7.9" and of
    "bitnami/nginx-exporter:1" alike. Init containers do not count. Each container is worth 10 of
    100 points, 1 of an extender's 10 as in the article; if some node has more than 10, less.
    """

    depends_on = Scope.NODE
    reads_placements = False  # it reads manifests only
    pod_fields = ("spec.containers[*].image",)

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Count the containers whose image is there."""
        total = np.zeros(len(nodes))
        for container in pod.spec.containers:
            total += nodes.image_names(_holding(container.image))
        return total

    def normalize(self, scores: Scores) -> Scores:
        """Map 10 containers, or the most that a node has, onto 100."""
        most: float = scores.max(initial=MOST)
        return scores * MAX_SCORE / most


def _holding(image: str) -> Callable[[str], bool]:
    return lambda name: image in name
