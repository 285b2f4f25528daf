"""Keeps pods on the nodes that they require, like kube-scheduler's plugin of the same name."""

from moorage import FilterPlugin, Nodes, Pod, Verdicts

REASON = "node(s) didn't match Pod's node affinity/selector"


class NodeAffinity(FilterPlugin):
    """Keeps pods on nodes that match their nodeSelector and required node affinity."""

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes that miss a label of the selector, or match no required term."""
        return nodes.verdicts().reject(~nodes.required_by(pod), REASON)
