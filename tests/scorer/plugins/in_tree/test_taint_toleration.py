from hypothesis import given

from moorage import Pod
from moorage.in_tree.scores.taint_toleration import TaintToleration
from moorage.models import NodeManifest
from moorage.rules.taints import tolerates
from moorage.testing import run_score
from tests.clusters import Cluster, clusters, incoming_pods


@given(clusters(), incoming_pods())
def test_agrees_with_a_look_at_each_node(cluster: Cluster, pod: Pod) -> None:
    def count(node: NodeManifest) -> int:
        return sum(
            taint.effect == "PreferNoSchedule"
            and not any(tolerates(toleration, taint) for toleration in pod.spec.tolerations)
            for taint in node.spec.taints
        )

    worst = max(count(node) for node in cluster.nodes)
    expected = {
        node.name: 100 - (100 * count(node) // worst if worst else 0) for node in cluster.nodes
    }
    assert run_score(TaintToleration(), pod, *cluster.nodes) == expected
