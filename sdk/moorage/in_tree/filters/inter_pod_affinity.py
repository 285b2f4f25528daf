"""Keeps pods near to and away from others, like the filter of kube-scheduler's plugin."""

import numpy as np

from moorage import (
    SKIP,
    Amounts,
    FilterPlugin,
    Mask,
    Nodes,
    Pod,
    Preparation,
    Rejection,
    Scope,
    Verdicts,
)
from moorage.in_tree.shared import InterPodAffinityArguments, pod_affinity, pod_anti_affinity
from moorage.rules import selects_pod

NO_AFFINITY = Rejection("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = Rejection("node(s) didn't match pod anti-affinity rules", unresolvable=False)
ANTI_AFFINITY_OF_OTHERS = Rejection(
    "node(s) didn't satisfy existing pods anti-affinity rules", unresolvable=False
)


class InterPodAffinity(FilterPlugin):
    """Keeps pods on nodes near the pods that they require, and away from those that they forbid.

    Running pods forbid as well. Namespace selectors may ask for kubernetes.io/metadata.name only,
    as nobody watches namespaces: others are a failure, and in the terms of running pods mean none.
    """

    depends_on = Scope.CLUSTER
    reads_placements = False  # kube-scheduler's own filter sees assumed pods
    pod_fields = (
        "metadata.namespace",
        "metadata.labels",
        "spec.affinity.podAffinity",
        "spec.affinity.podAntiAffinity",
    )

    class Args(InterPodAffinityArguments):  # noqa: D106 - inherited, as the documentation shows
        pass

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods without required terms that are of no concern to those of others."""
        self._forbidden = _forbidden_by_others(pod, nodes.cluster)
        own = pod_affinity(pod).required or pod_anti_affinity(pod).required
        return None if own or self._forbidden else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes by the pod's affinity, its anti-affinity and that of others, in order."""
        verdicts = nodes.verdicts()
        verdicts.reject(_misses(pod, nodes), NO_AFFINITY)
        for term in pod_anti_affinity(pod).required:
            matching = nodes.cluster.count_pods([term], pod.namespace)
            verdicts.reject(nodes.by_domain(term.topology_key, matching) > 0, ANTI_AFFINITY)
        for key, carriers in self._forbidden:
            verdicts.reject(nodes.by_domain(key, carriers) > 0, ANTI_AFFINITY_OF_OTHERS)
        return verdicts


def _forbidden_by_others(pod: Pod, cluster: Nodes) -> list[tuple[str, Amounts]]:
    return [
        (term.topology_key, carriers)
        for term, carriers in cluster.terms_about(pod).items()
        if term.anti and term.weight is None
    ]


def _misses(pod: Pod, nodes: Nodes) -> Mask:
    """Return where a domain of the required affinity lacks pods that meet all its terms.

    The first pod of a group that wants to be together may go anywhere with the right labels.
    """
    terms, cluster = pod_affinity(pod).required, nodes.cluster
    unlabelled, missing = np.zeros(len(nodes), np.bool_), np.zeros(len(nodes), np.bool_)
    if not terms:
        return missing
    is_first = all(selects_pod(term, pod.namespace, pod) for term in terms)
    matching = cluster.count_pods(terms, pod.namespace)
    for key in {term.topology_key for term in terms}:
        unlabelled |= nodes.label(key).isin((None,))
        missing |= nodes.by_domain(key, matching) == 0  # so it is without the label
        is_first &= not cluster.by_domain(key, matching).any()
    return unlabelled if is_first else missing
