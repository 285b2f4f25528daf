"""A rule that only another node cures: what is written on a node decides."""

from moorage import FilterPlugin, Node, Pod, Rejection


class Hot(FilterPlugin):
    """Keeps pods off nodes with the annotation `hot`."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return Rejection("node is hot") if "hot" in node.annotations else None
