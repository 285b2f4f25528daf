"""Spreads the pods of an app over zones: an example of a plugin in a package."""

from collections import Counter
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
    ScorePlugin,
    Scores,
    normalize_by_maximum,
)

NO_ZONE = Rejection("node is in no zone")


class ZoneSpread(FilterPlugin, ScorePlugin):
    """Keeps pods of apps on nodes in a zone, and prefers zones with few pods of the same app."""

    class Args(Arguments):
        """The keys of the labels that say which app a pod is of, and in which zone a node is."""

        app: Annotated[str, Meta(min_length=1)] = "app"
        zone: Annotated[str, Meta(min_length=1)] = "topology.kubernetes.io/zone"

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods that are of no app; count the others' fellows by zone."""
        app = pod.labels.get(self.args.app)
        if app is None:
            return SKIP
        self._pods = Counter(
            node.labels.get(self.args.zone)
            for node in nodes
            for other in node.pods
            if other.namespace == pod.namespace and other.labels.get(self.args.app) == app
        )
        return None

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        """Reject nodes without a zone."""
        return None if self.args.zone in node.labels else NO_ZONE

    def score_node(self, pod: Pod, node: Node) -> float:
        """Return how many pods of the app are in the node's zone."""
        return self._pods[node.labels.get(self.args.zone)]

    def normalize(self, scores: Scores) -> Scores:
        """Prefer zones with few."""
        return normalize_by_maximum(scores, reverse=True)
