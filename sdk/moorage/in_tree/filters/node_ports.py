"""Keeps pods off nodes whose host ports are taken, like kube-scheduler's plugin."""

from moorage import FilterPlugin, Nodes, Pod, Rejection, Scope, Verdicts
from moorage.plugin.pod_fields import PORT_FIELDS

REASON = Rejection("node(s) didn't have free ports for the requested pod ports", unresolvable=False)


class NodePorts(FilterPlugin):
    """Keeps pods off nodes where a pod has taken one of their host ports."""

    depends_on = Scope.NODE
    reads_placements = False  # kube-scheduler's own filter sees assumed pods
    pod_fields = PORT_FIELDS

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes where one of the pod's host ports is taken."""
        verdicts = nodes.verdicts()
        if pod.host_ports:
            verdicts.reject(nodes.port_conflicts(pod.host_ports), REASON)
        return verdicts
