"""Keeps pods on the nodes that they require, like kube-scheduler's plugin of the same name."""

import numpy as np

from moorage import FilterPlugin, Mask, Nodes, Pod, Verdicts
from moorage.models import NodeSelector

REASON = "node(s) didn't match Pod's node affinity/selector"


class NodeAffinity(FilterPlugin):
    """Keeps pods on nodes that match their nodeSelector and required node affinity."""

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes that miss a label of the selector, or match no required term."""
        verdicts = nodes.verdicts()
        for key, value in pod.spec.node_selector.items():
            verdicts.reject(~nodes.label(key).isin((value,)), REASON)
        required = _required(pod)
        if required is not None:
            verdicts.reject(~_matching(nodes, required), REASON)
        return verdicts


def _required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def _matching(nodes: Nodes, selector: NodeSelector) -> Mask:
    mask = np.zeros(len(nodes), np.bool_)
    for term in selector.node_selector_terms:
        mask |= nodes.matching(term)
    return mask
