"""A rule that an autoscaler does not know, and that a new node cures."""

from moorage import FilterPlugin, Node, Pod, Rejection

HOT = Rejection("node is hot", cured_by="capacity")
NEVER = Rejection("the pod is not wanted")


class Heated(FilterPlugin):
    """Rejects nodes with the annotation `heated/hot`.

    A pod with the annotation `heated/never` is rejected everywhere. One with `heated/cold-label`
    needs a node with that label and value. With `heated/reject` nodes are hot whose names begin so.
    """

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        if "heated/never" in pod.annotations:
            return NEVER
        key, _, value = pod.annotations.get("heated/cold-label", "").partition("=")
        if key and node.labels.get(key) != value:
            return HOT
        prefix = pod.annotations.get("heated/reject")
        if prefix and node.name.startswith(prefix):
            return HOT
        return HOT if "heated/hot" in node.annotations else None
