"""Plugins that leave several equally good nodes to choose from, one of which pods claim."""

from moorage import FilterPlugin, Node, Pod, Rejection, ScorePlugin


class Claiming(FilterPlugin):
    """Lets all nodes pass, and has pods claim theirs."""

    reads_placements = True

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Let a node pass."""
        del pod, node
        return None

    def wants_claim(self, pod: Pod) -> bool:
        """Have each pod claim its node."""
        del pod
        return True


class Even(ScorePlugin):
    """Prefers nodes with an even number."""

    def score_node(self, pod: Pod, node: Node) -> float:
        """Return 1 for an even number."""
        del pod
        return float(int(node.name[1:]) % 2 == 0)
