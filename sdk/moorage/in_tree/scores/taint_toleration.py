"""Avoids nodes with taints of the mild sort, like kube-scheduler's plugin of the same name."""

import functools

from moorage import Nodes, Normalization, Pod, Scope, ScorePlugin, Scores
from moorage.models import Taint, Toleration
from moorage.rules.taints import PREFER_NO_SCHEDULE, count_untolerated


class TaintToleration(ScorePlugin):
    """Prefers nodes with few PreferNoSchedule taints that the pod does not tolerate."""

    depends_on = Scope.NODE
    reads_placements = False  # it reads manifests only
    pod_fields = ("spec.tolerations",)
    normalization = Normalization.REVERSED_MAXIMUM

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Count the taints that the pod does not tolerate."""
        tolerations = pod.spec.tolerations
        return nodes.taints().map(lambda taints: _count(taints, tolerations) if taints else 0)


@functools.lru_cache(maxsize=4096)
def _count(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    return count_untolerated(taints, tolerations, PREFER_NO_SCHEDULE)
