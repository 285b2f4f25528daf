"""LeastAllocated and MostAllocated, compared with a look at each node."""

from collections.abc import Callable

import pytest
from hypothesis import given

from moorage import Pod, ScorePlugin
from moorage.in_tree.scores.node_resources_least_allocated import NodeResourcesLeastAllocated
from moorage.in_tree.scores.node_resources_most_allocated import NodeResourcesMostAllocated
from moorage.models import NodeManifest
from moorage.testing import run_score
from moorage_host.policy.checks import check_arguments
from tests.clusters import GPU, Cluster, clusters, incoming_pods

WEIGHTS = {"cpu": 2, "memory": 3, "ephemeral-storage": 1, GPU: 5}


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        (NodeResourcesLeastAllocated, lambda there, wanted: max(0, there - wanted) * 100 // there),
        (NodeResourcesMostAllocated, lambda there, wanted: min(wanted, there) * 100 // there),
    ],
)
@given(cluster=clusters(), pod=incoming_pods())
def test_agrees_with_a_look_at_each_node(
    cluster: Cluster, pod: Pod, kind: type[ScorePlugin], points: Callable[[int, int], int]
) -> None:
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

    weights = [{"name": name, "weight": weight} for name, weight in WEIGHTS.items()]
    plugin = kind(check_arguments({"resources": weights}, kind.Args, "args"))
    expected = {node.name: score(node) for node in cluster.nodes}
    assert run_score(plugin, pod, *cluster.nodes, pods=cluster.pods) == expected
