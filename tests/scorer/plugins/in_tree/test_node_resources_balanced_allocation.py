import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import Pod
from moorage.in_tree.scores.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from moorage.in_tree.scores.resources import ResourceSpec
from moorage.models import NodeManifest
from moorage.testing import make_node, make_pod, run_score
from tests.clusters import GPU, Cluster, clusters, incoming_pods

NODE = make_node("n1", allocatable={"cpu": "4", "memory": "8Gi", GPU: "4", "pods": "110"})


def plugin(form: str, *resources: str) -> NodeResourcesBalancedAllocation:
    args = NodeResourcesBalancedAllocation.Args
    specs = tuple(ResourceSpec(name=name) for name in resources or ("cpu", "memory"))
    if form == "older":
        return NodeResourcesBalancedAllocation(args(resources=specs, form="older"))
    return NodeResourcesBalancedAllocation(args(resources=specs))


# s = floor((1 - |f1-f2|/2) * 100); improvement = 50 + (50 + s(with) - s(without)) // 2
@pytest.mark.parametrize(
    ("there", "wanted", "older", "newer"),
    [
        # f = 1/4, 1/4: s = 100, as without: 50 + 50//2
        pytest.param({}, {"cpu": "1", "memory": "2Gi"}, 100, 75, id="balanced as before"),
        # f = 1/4, 0: s = 87.5 -> 87; without 100: 50 + 37//2 = 50 + 18
        pytest.param({}, {"cpu": "1"}, 87, 68, id="worse"),
        # without f = 1/2, 0: s = 75; with 1/2, 1/2: 100: 50 + 75//2 = 50 + 37
        pytest.param({"cpu": "2"}, {"memory": "4Gi"}, 100, 87, id="better"),
        # without f = 1, 0: s = 50; with 1, 1: 100: 50 + 100//2
        pytest.param({"cpu": "4"}, {"memory": "8Gi"}, 100, 100, id="best"),
        # without f = 0, 0; with 1, 0: s = 50: 50 + 0
        pytest.param({}, {"cpu": "4"}, 50, 50, id="worst"),
        # f is at most 1: 8 cores of 4 and nothing are 1, 0
        pytest.param({}, {"cpu": "8"}, 50, 50, id="more than there is"),
    ],
)
def test_scores_say_how_balanced_the_node_is_and_becomes(
    there: dict[str, str], wanted: dict[str, str], older: int, newer: int
) -> None:
    pods = [make_pod("other", node="n1", requests=there)]
    pod = make_pod(requests=wanted)
    assert run_score(plugin("older"), pod, NODE, pods=pods) == {"n1": older}
    assert run_score(plugin("1.36"), pod, NODE, pods=pods) == {"n1": newer}


def test_three_resources_use_the_standard_deviation() -> None:
    # f = 1/2, 1/4, 0: mean 1/4, variance (1/16 + 0 + 1/16)/3 = 1/24, std 0.2041: 79.59 -> 79
    pod = make_pod(requests={"cpu": "2", "memory": "2Gi", GPU: "0"})
    assert run_score(plugin("older", "cpu", "memory", "ephemeral-storage"), pod, NODE) == {"n1": 87}
    storage = make_node("n1", allocatable={"cpu": "4", "memory": "8Gi", "ephemeral-storage": "1Gi"})
    scores = run_score(plugin("older", "cpu", "memory", "ephemeral-storage"), pod, storage)
    assert scores == {"n1": 79}


def test_one_resource_is_always_balanced() -> None:
    assert run_score(plugin("older", "cpu"), make_pod(requests={"cpu": "1"}), NODE) == {"n1": 100}


def test_pods_that_request_nothing_are_skipped_since_1_36() -> None:
    assert run_score(plugin("1.36"), make_pod(), NODE) == {}
    assert run_score(plugin("1.36"), make_pod(requests={GPU: "1"}), NODE) == {}
    assert run_score(plugin("older"), make_pod(), NODE) == {"n1": 100}


@given(clusters(), incoming_pods(), st.sampled_from(["1.36", "older"]))
def test_agrees_with_a_look_at_each_node(cluster: Cluster, pod: Pod, form: str) -> None:
    resources = ["cpu", "memory", "ephemeral-storage", GPU]

    def balance(node: NodeManifest, pods: list[Pod]) -> int:
        shares = []
        for resource in resources:
            there = node.allocatable.get(resource, 0)
            if there and (resource != GPU or pod.requests.get(GPU)):
                wanted = sum(p.requests.get(resource, 0) for p in pods)
                shares.append(min(wanted / there, 1.0))
        if len(shares) < 2:
            return 100
        if len(shares) == 2:
            return int((1 - abs((shares[0] - shares[1]) / 2)) * 100)
        mean = sum(shares) / len(shares)
        variance = sum((share - mean) * (share - mean) for share in shares) / len(shares)
        return int((1 - math.sqrt(variance)) * 100)

    def score(node: NodeManifest) -> int:
        others = cluster.pods_on(node)
        after = balance(node, [*others, pod])
        return after if form == "older" else 50 + (50 + after - balance(node, others)) // 2

    idle = not any(pod.requests.get(resource) for resource in resources)
    skips = idle and form == "1.36"
    expected = {} if skips else {node.name: score(node) for node in cluster.nodes}
    scores = run_score(plugin(form, *resources), pod, *cluster.nodes, pods=cluster.pods)
    assert scores == expected
