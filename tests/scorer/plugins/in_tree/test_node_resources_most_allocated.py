import pytest
from hypothesis import given

from moorage import Pod
from moorage.in_tree.scores.node_resources_most_allocated import NodeResourcesMostAllocated
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from tests.clusters import GPU, Cluster, clusters, incoming_pods
from tests.scorer.plugins.in_tree.test_node_resources_least_allocated import WEIGHTS, looked_up

SPACE = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def plugin(**resources: int) -> NodeResourcesMostAllocated:
    weights = [{"name": name, "weight": weight} for name, weight in resources.items()]
    args = check_arguments({"resources": weights}, NodeResourcesMostAllocated.Args, "args")
    return NodeResourcesMostAllocated(args)


@pytest.mark.parametrize(
    ("requests", "score"),
    [
        # 1000*100//4000 = 25 and 2*100//8 = 25
        pytest.param({"cpu": "1", "memory": "2Gi"}, 25, id="a quarter of both"),
        # 75 and 25: 100//2
        pytest.param({"cpu": "3", "memory": "2Gi"}, 50, id="the mean of both"),
        # 1333*100//4000 = 33.3 -> 33 and 25: 58//2 = 29
        pytest.param({"cpu": "1333m", "memory": "2Gi"}, 29, id="truncated"),
        # 100m and 200 MiB: 2.5 -> 2 and 200*100//8192 = 2.4 -> 2
        pytest.param({}, 2, id="no requests count as 100m and 200 MiB"),
        # More than there is is 100: (100+25)//2 = 62.5 -> 62
        pytest.param({"cpu": "5", "memory": "2Gi"}, 62, id="more than there is"),
    ],
)
def test_scores_are_what_would_be_requested_in_percent(
    requests: dict[str, str], score: int
) -> None:
    node = make_node("n1", allocatable=SPACE)
    scores = run_score(NodeResourcesMostAllocated(), make_pod(requests=requests), node)
    assert scores == {"n1": score}


def test_other_pods_on_the_node_count_idle_ones_too() -> None:
    # n1: cpu (100+900)*100//4000 = 25, memory 400*100//8192 = 4: 29//2 = 14
    # n2: cpu 22, memory 200*100//8192 = 2: 24//2 = 12
    nodes = make_node("n1", allocatable=SPACE), make_node("n2", allocatable=SPACE)
    pod = make_pod(requests={"cpu": "900m"})
    idle = make_pod("idle", node="n1")
    scores = run_score(NodeResourcesMostAllocated(), pod, *nodes, pods=[idle])
    assert scores == {"n1": 14, "n2": 12}


def test_weights_make_a_weighted_mean_of_what_is_there_and_requested() -> None:
    # n1: cpu 25, gpu 2*100//4 = 50: (25 + 50*3)//4 = 43; n2 has no gpu: 25
    gpus = make_node("n1", allocatable={**SPACE, GPU: "4"})
    nodes = gpus, make_node("n2", allocatable=SPACE)
    weighted = plugin(**{"cpu": 1, GPU: 3})
    scores = run_score(weighted, make_pod(requests={"cpu": "1", GPU: "2"}), *nodes)
    assert scores == {"n1": 43, "n2": 25}
    assert run_score(weighted, make_pod(requests={"cpu": "1"}), *nodes) == {"n1": 25, "n2": 25}


@given(clusters(), incoming_pods())
def test_agrees_with_a_look_at_each_node(cluster: Cluster, pod: Pod) -> None:
    expected = looked_up(cluster, pod, lambda there, wanted: min(wanted, there) * 100 // there)
    assert run_score(plugin(**WEIGHTS), pod, *cluster.nodes, pods=cluster.pods) == expected
