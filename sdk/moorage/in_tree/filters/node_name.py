"""Keeps a pod that names its node off all others, like kube-scheduler's plugin of the same name."""

from moorage import FilterPlugin, Nodes, Pod, Scope, Verdicts
from moorage.models import NodeSelectorTerm, Requirement

REASON = "node(s) didn't match the requested node name"


class NodeName(FilterPlugin):
    """Keeps a pod with spec.nodeName off all other nodes."""

    depends_on = Scope.NODE
    reads_placements = False  # it reads manifests only
    pod_fields = ("spec.nodeName",)

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject all nodes but the one that the pod names."""
        verdicts, name = nodes.verdicts(), pod.spec.node_name
        if not name:
            return verdicts
        requirement = Requirement(key="metadata.name", operator="NotIn", values=(name,))
        others = nodes.matching(NodeSelectorTerm(match_fields=(requirement,)))
        return verdicts.reject(others, REASON)
