from hypothesis import given

from moorage import Pod
from moorage.in_tree.scores.taint_toleration import TaintToleration
from moorage.models import NodeManifest, Taint, Toleration
from moorage.rules.taints import tolerates
from moorage.testing import make_node, make_pod, run_score
from tests.clusters import Cluster, clusters, incoming_pods


def soft(*keys: str) -> list[Taint]:
    return [Taint(key=key, effect="PreferNoSchedule") for key in keys]


def test_scores_fall_with_the_number_of_taints() -> None:
    # 100 - 100*n//3: n = 0, 1, 2, 3
    nodes = [make_node(f"n{n}", taints=soft(*"abc"[:n])) for n in range(4)]
    scores = run_score(TaintToleration(), make_pod(), *nodes)
    assert scores == {"n0": 100, "n1": 67, "n2": 34, "n3": 0}


def test_only_taints_that_are_soft_and_not_tolerated_count() -> None:
    hard = [Taint(key="x", effect="NoSchedule"), Taint(key="x", effect="NoExecute")]
    nodes = make_node("hard", taints=hard), make_node("soft", taints=soft("a", "b"))
    pod = make_pod(tolerations=[Toleration(key="a", operator="Exists", effect="NoSchedule")])
    assert run_score(TaintToleration(), pod, *nodes) == {"hard": 100, "soft": 0}
    pod = make_pod(tolerations=[Toleration(key="a", operator="Exists")])
    scores = run_score(TaintToleration(), pod, *nodes, make_node("softer", taints=soft("c", "d")))
    assert scores == {"hard": 100, "soft": 50, "softer": 0}


def test_nodes_without_such_taints_are_all_best() -> None:
    assert run_score(TaintToleration(), make_pod(), make_node("a"), make_node("b")) == {
        "a": 100,
        "b": 100,
    }


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
