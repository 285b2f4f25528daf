from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from moorage import Pod
from moorage.in_tree.scores.inter_pod_affinity import InterPodAffinity
from moorage.models import Affinity, NodeManifest, PodAffinityTerm
from moorage.rules import selects_pod
from moorage.testing import make_pod, run_score
from tests.clusters import NAMESPACES, Cluster, affinities, clusters, pod_labels


@given(clusters(), affinities, pod_labels, st.sampled_from(NAMESPACES), st.sampled_from((0, 1, 30)))
def test_agrees_with_a_look_at_each_node(
    cluster: Cluster,
    affinity: Affinity | None,
    labels: dict[str, str],
    namespace: str,
    hard: int,
) -> None:
    pod = make_pod("new", namespace=namespace, labels=labels, affinity=affinity)

    def wishes(owner: Pod, *, with_required: bool) -> Iterator[tuple[int, PodAffinityTerm]]:
        of = owner.spec.affinity or Affinity()
        for sign, side in ((1, of.pod_affinity), (-1, of.pod_anti_affinity)):
            for each in side.preferred if side else ():
                yield sign * each.weight, each.pod_affinity_term
            if side and sign == 1 and with_required and hard:
                yield from ((hard, each) for each in side.required)

    def relations() -> Iterator[tuple[int, str, str]]:
        """Weight, key and value of all that attracts or repels."""
        for node in cluster.nodes:
            for other in cluster.pods_on(node):
                found = [
                    (weight, t)
                    for weight, t in wishes(pod, with_required=False)
                    if selects_pod(t, namespace, other)
                ] + [
                    (weight, t)
                    for weight, t in wishes(other, with_required=True)
                    if selects_pod(t, other.namespace, pod)
                ]
                for weight, t in found:
                    if t.topology_key in node.metadata.labels:
                        yield weight, t.topology_key, node.metadata.labels[t.topology_key]

    found = list(relations())

    def total(node: NodeManifest) -> int:
        return sum(weight for weight, key, value in found if node.metadata.labels.get(key) == value)

    totals = {node.name: total(node) for node in cluster.nodes}
    low, high = min(totals.values()), max(totals.values())
    expected = {
        name: int(100.0 * ((value - low) / (high - low))) if high > low else 0
        for name, value in totals.items()
    }
    plugin = InterPodAffinity(InterPodAffinity.Args(hard_pod_affinity_weight=hard))
    scores = run_score(plugin, pod, *cluster.nodes, pods=cluster.pods)
    assert scores == (expected if found else {})
