import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import ConfigurationError, Pod
from moorage.in_tree.scores.requested_to_capacity_ratio import RequestedToCapacityRatio
from moorage.models import NodeManifest
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from tests.clusters import GPU, Cluster, clusters, incoming_pods

SPACE = {"cpu": "4", "memory": "8Gi", "pods": "110"}
Shape = list[tuple[int, int]]


def plugin(shape: Shape, **resources: int) -> RequestedToCapacityRatio:
    args = {
        "shape": [{"utilization": u, "score": s} for u, s in shape],
        "resources": [
            {"name": name, "weight": weight}
            for name, weight in (resources or {"cpu": 1, "memory": 1}).items()
        ],
    }
    return RequestedToCapacityRatio(check_arguments(args, RequestedToCapacityRatio.Args, "args"))


def test_by_default_fuller_is_better() -> None:
    pod = make_pod(requests={"cpu": "3", "memory": "2Gi"})
    scores = run_score(RequestedToCapacityRatio(), pod, make_node("n1", allocatable=SPACE))
    assert scores == {"n1": 50}


def test_a_score_of_0_does_not_count() -> None:
    # cpu 100 % scores 0: memory 75 / 1
    pod = make_pod(requests={"cpu": "4", "memory": "2Gi"})
    node = make_node("n1", allocatable=SPACE)
    assert run_score(plugin([(0, 10), (100, 0)]), pod, node) == {"n1": 75}


@pytest.mark.parametrize("shape", [[(50, 1), (50, 2)], [(60, 1), (50, 2)]])
def test_utilization_must_rise(shape: Shape) -> None:
    with pytest.raises(ConfigurationError, match="must rise from point to point"):
        plugin(shape)


@given(
    clusters(),
    incoming_pods(),
    st.dictionaries(st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=4),
)
def test_agrees_with_a_look_at_each_node(
    cluster: Cluster, pod: Pod, points: dict[int, int]
) -> None:
    weights = {"cpu": 2, "memory": 3, "ephemeral-storage": 1, GPU: 5}
    shape = sorted(points.items())

    def curve(percent: int) -> int:
        for index, (utilization, score) in enumerate(shape):
            if percent <= utilization:
                if index == 0:
                    return 10 * score
                before, low = shape[index - 1]
                rise = 10 * (score - low) * (percent - before) / (utilization - before)
                return 10 * low + math.trunc(rise)
        return 10 * shape[-1][1]

    def points_of(node: NodeManifest, resource: str) -> int:
        there = node.allocatable.get(resource, 0)
        if there == 0 or (resource == GPU and not pod.requests.get(GPU)):
            return 0
        pods = [*cluster.pods_on(node), pod]
        if resource in ("cpu", "memory"):
            wanted = sum(p.nonzero_requests[resource] for p in pods)
        else:
            wanted = sum(p.requests.get(resource, 0) for p in pods)
        return curve(100 if wanted > there else wanted * 100 // there)

    def score(node: NodeManifest) -> int:
        counted = [(points_of(node, r), w) for r, w in weights.items() if points_of(node, r)]
        total = sum(weight for _, weight in counted)
        return math.floor(sum(p * w for p, w in counted) / total + 0.5) if total else 0

    expected = {node.name: score(node) for node in cluster.nodes}
    scores = run_score(plugin(shape, **weights), pod, *cluster.nodes, pods=cluster.pods)
    assert scores == expected
