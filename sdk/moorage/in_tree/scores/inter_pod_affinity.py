"""Prefers nodes near the pods that pods wish for, like the score of kube-scheduler's plugin."""

from collections.abc import Iterator

import numpy as np

from moorage import MAX_SCORE, SKIP, Amounts, Nodes, Pod, Preparation, ScorePlugin, Scores
from moorage.in_tree.shared import InterPodAffinityArguments, pod_affinity, pod_anti_affinity


class InterPodAffinity(ScorePlugin):
    """Prefers nodes near the pods that they wish for, or that wish for them, and far from others.

    Namespace selectors may ask for kubernetes.io/metadata.name only, as nobody watches namespaces:
    others are a failure, and in the terms of running pods mean none.
    """

    class Args(InterPodAffinityArguments):  # noqa: D106 - inherited, as the documentation shows
        pass

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Find the pods that attract and repel; skip if there are none."""
        own = pod_affinity(pod).preferred or pod_anti_affinity(pod).preferred
        if not own and self.args.ignore_preferred_terms_of_existing_pods:
            return SKIP
        found = [*_wished(pod, nodes.cluster), *self._wished_by_others(pod, nodes.cluster)]
        self._wishes = [
            (key, weight, pods)
            for key, weight, pods in found
            if nodes.cluster.by_domain(key, pods).any()
        ]
        return None if self._wishes else SKIP

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Add up the weights of the terms, once for each pod in the node's domain."""
        total = np.zeros(len(nodes))
        for key, weight, pods in self._wishes:
            total += weight * nodes.by_domain(key, pods)
        return total

    def normalize(self, scores: Scores) -> Scores:
        """Give 100 to the best nodes, 0 to the worst, and 0 to all if they are the same."""
        lowest = scores.min(initial=np.inf)
        span = scores.max(initial=-np.inf) - lowest
        return (
            np.trunc(MAX_SCORE * ((scores - lowest) / span)) if span > 0 else np.zeros_like(scores)
        )

    def _wished_by_others(self, pod: Pod, cluster: Nodes) -> Iterator[tuple[str, int, Amounts]]:
        for term, carriers in cluster.terms_about(pod).items():
            weight = term.weight
            if weight is None:
                weight = 0 if term.anti else self.args.hard_pod_affinity_weight
            if weight:
                yield term.topology_key, -weight if term.anti else weight, carriers


def _wished(pod: Pod, cluster: Nodes) -> Iterator[tuple[str, int, Amounts]]:
    for sign, side in ((1, pod_affinity(pod)), (-1, pod_anti_affinity(pod))):
        for wish in side.preferred:
            term = wish.pod_affinity_term
            yield (
                term.topology_key,
                sign * wish.weight,
                cluster.count_pods([term], pod.namespace),
            )
