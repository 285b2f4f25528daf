"""Keeps pods on the nodes that they require, like kube-scheduler's plugin of the same name."""

import numpy as np

from moorage import FilterPlugin, Mask, Nodes, Pod, Preparation, Scope, Verdicts
from moorage.models import NodeSelectorTerm, Requirement

REASON = "node(s) didn't match Pod's node affinity/selector"


class NodeAffinity(FilterPlugin):
    """Keeps pods on nodes that match their nodeSelector and required node affinity."""

    depends_on = Scope.NODE
    reads_placements = False  # it reads manifests only
    pod_fields = ("spec.nodeSelector", "spec.affinity.nodeAffinity")

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Go on with the nodes that are required by name, as for each pod of a DaemonSet."""
        terms = [NodeSelectorTerm(match_fields=_names(term)) for term in _required(pod)]
        if not terms or not all(term.match_fields for term in terms):
            return None
        named: Mask = np.logical_or.reduce([nodes.matching(term) for term in terms])
        return Preparation(nodes=nodes.where(named))

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes that miss a label of the selector, or match no required term."""
        verdicts = nodes.verdicts()
        if pod.spec.node_selector or pod.spec.affinity:
            verdicts.reject(~nodes.required_by(pod), REASON)
        return verdicts


def _required(pod: Pod) -> tuple[NodeSelectorTerm, ...]:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return affinity.required.node_selector_terms if affinity and affinity.required else ()


def _names(term: NodeSelectorTerm) -> tuple[Requirement, ...]:
    return tuple(r for r in term.match_fields if r.key == "metadata.name" and r.operator == "In")
