"""Keeps pods off nodes with taints, like kube-scheduler's plugin of the same name."""

from moorage import FilterPlugin, Nodes, Pod, Verdicts
from moorage.models import Taint
from moorage.tolerations import DO_NOT_SCHEDULE, untolerated

REASON = "node(s) had untolerated taint(s)"
"""kube-scheduler 1.36 no longer says which taint."""


class TaintToleration(FilterPlugin):
    """Keeps pods off nodes that have NoSchedule or NoExecute taints which they do not tolerate."""

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes with a taint that the pod does not tolerate."""
        tolerations = pod.spec.tolerations

        def repels(taints: tuple[Taint, ...] | None) -> bool:
            return untolerated(taints or (), tolerations, DO_NOT_SCHEDULE) is not None

        return nodes.verdicts().reject(nodes.taints().where(repels), REASON)
