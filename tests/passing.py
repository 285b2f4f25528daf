"""A filter plugin that rejects nothing, for tests that are about something else."""

from moorage import FilterPlugin, Node, Pod, Rejection


class Passes(FilterPlugin):
    """Rejects no node."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        return None
