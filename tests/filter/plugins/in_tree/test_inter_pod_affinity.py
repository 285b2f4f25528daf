import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import PluginFailedError, Pod, Rejection
from moorage.in_tree.filters.inter_pod_affinity import InterPodAffinity
from moorage.models import Affinity, LabelSelector, NodeManifest, PodAffinity, PodAffinityTerm
from moorage.rules import selects_pod
from moorage.testing import make_node, make_pod, run_filter
from tests.clusters import NAMESPACES, Cluster, affinities, clusters, pod_labels

NO_AFFINITY = Rejection("node(s) didn't match pod affinity rules", unresolvable=True)
ANTI = Rejection("node(s) didn't match pod anti-affinity rules", unresolvable=False)
OTHERS = Rejection("node(s) didn't satisfy existing pods anti-affinity rules", unresolvable=False)


def test_namespaces_by_labels_that_nobody_knows_are_a_failure() -> None:
    wide = PodAffinityTerm(
        label_selector=LabelSelector(),
        namespace_selector=LabelSelector(match_labels={"env": "prod"}),
        topology_key="zone",
    )
    pod = make_pod(affinity=Affinity(pod_anti_affinity=PodAffinity(required=(wide,))))
    with pytest.raises(PluginFailedError, match="the label 'env' of namespaces is not known"):
        run_filter(InterPodAffinity(), pod, make_node(labels={"zone": "a"}))


@given(clusters(), affinities, pod_labels, st.sampled_from(NAMESPACES))
def test_agrees_with_a_look_at_each_node(
    cluster: Cluster, affinity: Affinity | None, labels: dict[str, str], namespace: str
) -> None:
    pod = make_pod("new", namespace=namespace, labels=labels, affinity=affinity)

    def required(owner: Pod, side: str) -> tuple[PodAffinityTerm, ...]:
        found: PodAffinity | None = getattr(owner.spec.affinity, side, None)
        return found.required if found else ()

    def together(node: NodeManifest, key: str) -> list[Pod]:
        """The pods in the domain of a node."""
        value = node.metadata.labels.get(key)
        if value is None:
            return []
        there = [n for n in cluster.nodes if n.metadata.labels.get(key) == value]
        return [other for n in there for other in cluster.pods_on(n)]

    near_terms, far_terms = required(pod, "pod_affinity"), required(pod, "pod_anti_affinity")

    def matches_all(other: Pod) -> bool:
        return all(selects_pod(t, namespace, other) for t in near_terms)

    def finds(node: NodeManifest, key: str) -> bool:
        return any(matches_all(other) for other in together(node, key))

    def verdict(node: NodeManifest) -> Rejection | None:
        keys = [t.topology_key for t in near_terms]
        if not all(key in node.metadata.labels for key in keys):
            return NO_AFFINITY
        if not all(finds(node, key) for key in keys):
            anywhere = any(finds(other, key) for other in cluster.nodes for key in keys)
            if anywhere or not matches_all(pod):
                return NO_AFFINITY
        for t in far_terms:
            if any(selects_pod(t, namespace, other) for other in together(node, t.topology_key)):
                return ANTI
        for key in node.metadata.labels:
            for other in together(node, key):
                for t in required(other, "pod_anti_affinity"):
                    if t.topology_key == key and selects_pod(t, other.namespace, pod):
                        return OTHERS
        return None

    expected = {node.name: verdict(node) for node in cluster.nodes}
    assert run_filter(InterPodAffinity(), pod, *cluster.nodes, pods=cluster.pods) == expected
