"""A filter and a score plugin, both of which are wrong: they are what `to-test` is for."""

from moorage import FilterPlugin, Node, Pod, Rejection, ScorePlugin


class Crowded(FilterPlugin):
    """Rejects nodes with 20 pods, though they may have 110."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Return why a node is crowded, if it is."""
        del pod
        return Rejection("node is crowded") if len(list(node.pods)) >= 20 else None


class FewPods(ScorePlugin):
    """Should prefer nodes with few pods, and prefers those with many."""

    def score_node(self, pod: Pod, node: Node) -> float:
        """Return the number of pods."""
        del pod
        return float(len(list(node.pods)))
