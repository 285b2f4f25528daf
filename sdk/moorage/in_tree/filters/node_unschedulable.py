"""Keeps pods off cordoned nodes, like kube-scheduler's plugin of the same name."""

from moorage import FilterPlugin, Nodes, Pod, Scope, Verdicts
from moorage.models import Taint
from moorage.rules.taints import tolerates

REASON = "node(s) were unschedulable"

TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""Whoever tolerates this taint may run on cordoned nodes."""


class NodeUnschedulable(FilterPlugin):
    """Keeps pods off cordoned nodes, unless they tolerate the taint of being cordoned."""

    depends_on = Scope.NODE
    reads_placements = False  # it reads manifests only
    pod_fields = ("spec.tolerations",)

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject cordoned nodes."""
        verdicts = nodes.verdicts()
        cordoned = nodes.unschedulable()
        if not cordoned.any() or any(tolerates(t, TAINT) for t in pod.spec.tolerations):
            return verdicts
        return verdicts.reject(cordoned, REASON)
