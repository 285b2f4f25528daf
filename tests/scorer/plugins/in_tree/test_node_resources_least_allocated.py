from collections.abc import Callable

import pytest
from hypothesis import given

from moorage import Pod
from moorage.in_tree.scores.node_resources_least_allocated import (
    NodeResourcesLeastAllocated,
)
from moorage.models import NodeManifest
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from tests.clusters import GPU, Cluster, clusters, incoming_pods

SPACE = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def plugin(**resources: int) -> NodeResourcesLeastAllocated:
    weights = [{"name": name, "weight": weight} for name, weight in resources.items()]
    args = check_arguments({"resources": weights}, NodeResourcesLeastAllocated.Args, "args")
    return NodeResourcesLeastAllocated(args)


@pytest.mark.parametrize(
    ("requests", "score"),
    [
        # (4000-1000)*100//4000 = 75 and (8-2)*100//8 = 75: (75+75)//2
        pytest.param({"cpu": "1", "memory": "2Gi"}, 75, id="a quarter of both"),
        # (4000-3000)*100//4000 = 25 and 75: 100//2
        pytest.param({"cpu": "3", "memory": "2Gi"}, 50, id="the mean of both"),
        # (4000-1333)*100//4000 = 66.675 -> 66 and 75: 141//2 = 70.5 -> 70
        pytest.param({"cpu": "1333m", "memory": "2Gi"}, 70, id="truncated twice"),
        # 100m and 200 MiB: 3900*100//4000 = 97.5 -> 97 and 7992*100//8192 = 97.56 -> 97
        pytest.param({}, 97, id="no requests count as 100m and 200 MiB"),
        pytest.param({"cpu": "4", "memory": "8Gi"}, 0, id="all of both"),
        # More than there is is 0, not negative: (0+75)//2 = 37.5 -> 37
        pytest.param({"cpu": "5", "memory": "2Gi"}, 37, id="more than there is"),
        # An explicit 0 stays 0: (100+75)//2 = 87.5 -> 87
        pytest.param({"cpu": "0", "memory": "2Gi"}, 87, id="an explicit 0"),
    ],
)
def test_scores_are_what_would_be_free_in_percent(requests: dict[str, str], score: int) -> None:
    node = make_node("n1", allocatable=SPACE)
    pod = make_pod(requests=requests)
    assert run_score(NodeResourcesLeastAllocated(), pod, node) == {"n1": score}


def test_other_pods_on_the_node_count_idle_ones_too() -> None:
    # n1: cpu (4000-100-900)*100//4000 = 75, memory (8192-200-200)*100//8192 = 95.1: 170//2 = 85
    # n2: cpu (4000-900)*100//4000 = 77.5 -> 77, memory (8192-200)*100//8192 = 97.6: 174//2 = 87
    nodes = make_node("n1", allocatable=SPACE), make_node("n2", allocatable=SPACE)
    pod = make_pod(requests={"cpu": "900m"})
    scores = run_score(
        NodeResourcesLeastAllocated(), pod, *nodes, pods=[make_pod("idle", node="n1")]
    )
    assert scores == {"n1": 85, "n2": 87}


def test_weights_make_a_weighted_mean() -> None:
    # cpu 25, memory 75: (25*1 + 75*3)//4 = 62.5 -> 62
    pod = make_pod(requests={"cpu": "3", "memory": "2Gi"})
    scores = run_score(plugin(cpu=1, memory=3), pod, make_node("n1", allocatable=SPACE))
    assert scores == {"n1": 62}


@pytest.mark.parametrize(
    ("requests", "scores"),
    [
        # Only cpu counts, 75, on both nodes.
        pytest.param({"cpu": "1"}, {"n1": 75, "n2": 75}, id="not requested: left out"),
        # n1: gpu (4-1)*100//4 = 75, too; n2 has none: 75 by cpu alone
        pytest.param({"cpu": "1", GPU: "1"}, {"n1": 75, "n2": 75}, id="absent: left out there"),
        # n1: gpu 0: (75+0)//2
        pytest.param({"cpu": "1", GPU: "4"}, {"n1": 37, "n2": 75}, id="present: counted"),
    ],
)
def test_extended_resources_count_where_requested_and_present(
    requests: dict[str, str], scores: dict[str, float]
) -> None:
    gpus = make_node("n1", allocatable={**SPACE, GPU: "4"})
    nodes = gpus, make_node("n2", allocatable=SPACE)
    assert run_score(plugin(**{"cpu": 1, GPU: 1}), make_pod(requests=requests), *nodes) == scores


WEIGHTS = {"cpu": 2, "memory": 3, "ephemeral-storage": 1, GPU: 5}


def looked_up(cluster: Cluster, pod: Pod, points: Callable[[int, int], int]) -> dict[str, int]:
    """Return the mean, by WEIGHTS, of the *points* for what each node has and what is wanted."""

    def share(node: NodeManifest, resource: str) -> int | None:
        there = node.allocatable.get(resource, 0)
        if there == 0 or (resource == GPU and not pod.requests.get(GPU)):
            return None
        pods = [*cluster.pods_on(node), pod]
        if resource in ("cpu", "memory"):
            wanted = sum(p.nonzero_requests[resource] for p in pods)
        else:
            wanted = sum(p.requests.get(resource, 0) for p in pods)
        return points(there, wanted)

    def score(node: NodeManifest) -> int:
        shares = [(share(node, resource), weight) for resource, weight in WEIGHTS.items()]
        counted = [(value, weight) for value, weight in shares if value is not None]
        total = sum(weight for _, weight in counted)
        return sum(value * weight for value, weight in counted) // total if total else 0

    return {node.name: score(node) for node in cluster.nodes}


@given(clusters(), incoming_pods())
def test_agrees_with_a_look_at_each_node(cluster: Cluster, pod: Pod) -> None:
    expected = looked_up(cluster, pod, lambda there, wanted: max(0, there - wanted) * 100 // there)
    assert run_score(plugin(**WEIGHTS), pod, *cluster.nodes, pods=cluster.pods) == expected
