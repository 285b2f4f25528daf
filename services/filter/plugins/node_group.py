"""Keeps pods on nodes of their own group: an example of a plugin in per-node form."""

from typing import Annotated

from moorage import (
    SKIP,
    Arguments,
    FilterPlugin,
    Meta,
    Node,
    Nodes,
    Pod,
    Preparation,
    Rejection,
    Scope,
)

NO_LABEL = Rejection("node does not have required label")
OTHER_GROUP = Rejection("nodeGroup of pod and node don't match")


class NodeGroup(FilterPlugin):
    """Keeps pods that carry a group label on nodes with the same value of that label.

    Pods without the label may run anywhere. Both reasons are unresolvable: evicting pods changes no
    label, so kube-scheduler need not try it.
    """

    depends_on = Scope.NODE
    reads_placements = False  # it reads manifests only
    pod_fields = ("metadata.labels",)
    cured_by = "capacity"  # by a node of the group

    class Args(Arguments):
        """The key of the label, the same on pods and nodes."""

        label: Annotated[str, Meta(min_length=1)] = "nodeGroup"

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods that belong to no group."""
        return None if self.args.label in pod.labels else SKIP

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Reject a node without the label, or with another value."""
        group = node.labels.get(self.args.label)
        if group is None:
            return NO_LABEL
        return None if group == pod.labels[self.args.label] else OTHER_GROUP
