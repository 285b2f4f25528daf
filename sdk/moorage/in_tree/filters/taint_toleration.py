"""Keeps pods off nodes with taints, like kube-scheduler's plugin of the same name."""

import functools

from moorage import FilterPlugin, Nodes, Pod, Scope, Verdicts
from moorage.models import Taint, Toleration
from moorage.rules.taints import DO_NOT_SCHEDULE, untolerated

REASON = "node(s) had untolerated taint(s)"
"""kube-scheduler 1.36 no longer names the taint."""


class TaintToleration(FilterPlugin):
    """Keeps pods off nodes that have NoSchedule or NoExecute taints which they do not tolerate."""

    depends_on = Scope.NODE
    reads_placements = False  # it reads manifests only
    pod_fields = ("spec.tolerations",)

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes with a taint that the pod does not tolerate."""
        tolerations = pod.spec.tolerations
        repelled = nodes.taints().where(lambda taints: bool(taints) and _repel(taints, tolerations))
        return nodes.verdicts().reject(repelled, REASON)


@functools.lru_cache(maxsize=4096)
def _repel(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> bool:
    return untolerated(taints, tolerations, DO_NOT_SCHEDULE) is not None
