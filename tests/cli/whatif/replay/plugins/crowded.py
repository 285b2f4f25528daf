"""A filter and a score plugin that replays run."""

from moorage import FilterPlugin, Node, Pod, Rejection, ScorePlugin


class Crowded(FilterPlugin):
    """Rejects nodes with 20 pods."""

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Return why a node is crowded, if it is."""
        del pod
        return Rejection("node is crowded") if len(list(node.pods)) >= 20 else None


class FewPods(ScorePlugin):
    """Prefers nodes with many pods."""

    def score_node(self, pod: Pod, node: Node) -> float:
        """Return the number of pods."""
        del pod
        return float(len(list(node.pods)))
