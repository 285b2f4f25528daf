import math

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


def test_one_resource_is_always_balanced() -> None:
    assert run_score(plugin("older", "cpu"), make_pod(requests={"cpu": "1"}), NODE) == {"n1": 100}


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
