"""Prefers nodes that have the images, like kube-scheduler's plugin of the same name in 1.37."""

from collections import Counter
from typing import Annotated

import numpy as np

from moorage import MAX_SCORE, Amounts, Arguments, Meta, Nodes, Pod, Scope, ScorePlugin, Scores

MIB = 1024 * 1024


class ImageLocality(ScorePlugin):
    """Prefers nodes that have the pod's images, the more so the larger and commoner they are."""

    depends_on = Scope.MANIFESTS
    reads_placements = False  # it reads manifests only
    pod_fields = (
        "spec.containers[*].image",
        "spec.initContainers[*].image",
        "spec.volumes[*].image",
    )

    class Args(Arguments):
        """Between which sums of image sizes, in bytes, scores rise from 0 to 100.

        Attributes:
            min_threshold: The sum below which images do not matter.
            max_container_threshold: The sum, per container and image volume, above which more does
                not help.
        """

        min_threshold: Annotated[int, Meta(ge=0)] = 23 * MIB
        max_container_threshold: Annotated[int, Meta(gt=0)] = 1000 * MIB

        def __post_init__(self) -> None:
            if self.max_container_threshold <= self.min_threshold:
                raise ValueError("maxContainerThreshold must be larger than minThreshold")

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return 0..100 by the sizes of the pod's images on each node.

        A size counts in proportion to the nodes of the cluster that have the image, so that pods
        do not crowd on the few that do.
        """
        total = np.zeros(len(nodes), np.int64)
        images = _images(pod)
        for image, uses in Counter(images).items():
            sizes, holders = nodes.image_sizes(image)
            if holders:
                spread = holders / nodes.cluster_size
                total += uses * (sizes * spread).astype(np.int64)
        low = self.args.min_threshold
        high = self.args.max_container_threshold * max(len(images), 1)
        percent: Amounts = MAX_SCORE * (np.clip(total, low, high) - low) // (high - low)
        return percent.astype(np.float64)


def _images(pod: Pod) -> list[str]:
    spec = pod.spec
    images = [container.image for container in (*spec.init_containers, *spec.containers)]
    images += [volume.image.reference for volume in spec.volumes if volume.image]
    return [_with_tag(image) for image in images]


def _with_tag(image: str) -> str:
    """Add the default tag; a colon before the last slash belongs to a registry's port."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"
