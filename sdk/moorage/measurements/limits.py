"""What pods may use at most: CPU in millicores and memory in bytes.

Limits are no column of the snapshot, because few plugins read them. Each pod is computed once.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from moorage.models import Container, Pod
from moorage.plugin.normalization import Scores
from moorage.snapshot import Nodes
from moorage.units.quantity import scaled

Pair = tuple[int, int]

CAPACITY: Final = 200_000
"""How many pods are cached: those of a large cluster. A full cache is emptied."""


class Limits:
    """Caches the limits of pods from one cycle to the next."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Pod, Pair]] = {}

    def of_pod(self, pod: Pod) -> Pair:
        """Return the limits of CPU and memory, or the requests where those are higher."""
        return _at_least_requests(pod, _sum_of_limits(pod))

    def of_nodes(self, nodes: Nodes) -> tuple[Scores, Scores]:
        """Return the sums over the pods of each of *nodes*, by CPU and by memory."""
        totals = np.zeros((len(nodes), 2))
        for index, node in enumerate(nodes):
            pairs = [self._cached(pod) for pod in node.pods]
            totals[index] = [sum(column) for column in zip(*pairs, strict=True)] or (0, 0)
        return totals[:, 0], totals[:, 1]

    def _cached(self, pod: Pod) -> Pair:
        known = self._known.get(pod.uid)
        if known is None or known[0] is not pod:
            if len(self._known) >= CAPACITY:
                self._known.clear()
            # Each pod is cached at once: a cycle that runs out of time keeps what it has done.
            known = self._known[pod.uid] = (pod, self.of_pod(pod))
        return known[1]


def _at_least_requests(pod: Pod, limits: Mapping[str, int]) -> Pair:
    cpu, memory = (max(limits[r], pod.requests.get(r, 0)) for r in ("cpu", "memory"))
    return cpu, memory


def _sum_of_limits(pod: Pod) -> Mapping[str, int]:
    spec = pod.spec
    return {
        resource: max(
            sum(_limits(spec.containers, resource)),
            *_limits(spec.init_containers, resource),
            0,
        )
        + scaled(resource, spec.overhead.get(resource, 0))
        for resource in ("cpu", "memory")
    }


def _limits(containers: Iterable[Container], resource: str) -> Iterable[int]:
    return (scaled(resource, c.resources.limits.get(resource, 0)) for c in containers)
