"""Avoids nodes with taints of the mild sort, like kube-scheduler's plugin of the same name."""

from moorage import Nodes, Pod, ScorePlugin, Scores, normalize_by_maximum
from moorage.models import Taint
from moorage.tolerations import PREFER_NO_SCHEDULE, count_untolerated


class TaintToleration(ScorePlugin):
    """Prefers nodes with few PreferNoSchedule taints that the pod does not tolerate."""

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Count the taints that the pod does not tolerate."""
        tolerations = pod.spec.tolerations

        def count(taints: tuple[Taint, ...] | None) -> int:
            return count_untolerated(taints or (), tolerations, PREFER_NO_SCHEDULE)

        return nodes.taints().map(count)

    def normalize(self, scores: Scores) -> Scores:
        """Give 100 to nodes without such taints, 0 to those with the most."""
        return normalize_by_maximum(scores, reverse=True)
