"""A rule across pods without a claim, where all pods prefer the same node: bursts break it."""

from moorage import FilterPlugin, Node, Nodes, Pod, Rejection, Scope, ScorePlugin


class Alone(FilterPlugin, ScorePlugin):
    """Lets one pod of each app on a node, and prefers the first nodes."""

    depends_on = Scope.NODE

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        mine = pod.labels.get("app")
        if any(other.labels.get("app") == mine for other in node.pods):
            return Rejection("node(s) already ran a pod of the app")
        return None

    def score(self, pod: Pod, nodes: Nodes) -> list[float]:
        return [100.0 - int(node.name[1:]) for node in nodes]
