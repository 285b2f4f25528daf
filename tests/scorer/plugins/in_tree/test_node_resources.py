"""Scores by what is requested of each node agree with a look at each; they are recorded too."""

import math
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import ConfigurationError, Pod, ScorePlugin
from moorage.in_tree.scores.node_resources_least_allocated import NodeResourcesLeastAllocated
from moorage.in_tree.scores.node_resources_most_allocated import NodeResourcesMostAllocated
from moorage.in_tree.scores.requested_to_capacity_ratio import RequestedToCapacityRatio
from moorage.models import NodeManifest
from moorage.testing import run_score
from moorage_host.policy.checks import check_arguments
from tests.clusters import GPU, Cluster, clusters, incoming_pods

WEIGHTS = {"cpu": 2, "memory": 3, "ephemeral-storage": 1, GPU: 5}
Shape = list[tuple[int, int]]


def plugin(kind: type[ScorePlugin], **more: object) -> ScorePlugin:
    resources = [{"name": name, "weight": weight} for name, weight in WEIGHTS.items()]
    return kind(check_arguments({"resources": resources, **more}, kind.Args, "args"))


def by_shape(shape: Shape) -> ScorePlugin:
    points = [{"utilization": utilization, "score": score} for utilization, score in shape]
    return plugin(RequestedToCapacityRatio, shape=points)


def shares(
    cluster: Cluster, pod: Pod, node: NodeManifest, points: Callable[[int, int], int]
) -> list[tuple[int, int]]:
    """Return the *points* of each resource that counts on a node, with its weight."""

    def wanted(resource: str) -> int:
        pods = [*cluster.pods_on(node), pod]
        if resource in ("cpu", "memory"):
            return sum(p.nonzero_requests[resource] for p in pods)
        return sum(p.requests.get(resource, 0) for p in pods)

    return [
        (points(there, wanted(resource)), weight)
        for resource, weight in WEIGHTS.items()
        if (there := node.allocatable.get(resource, 0))
        and (resource != GPU or pod.requests.get(GPU))
    ]


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        (NodeResourcesLeastAllocated, lambda there, wanted: max(0, there - wanted) * 100 // there),
        (NodeResourcesMostAllocated, lambda there, wanted: min(wanted, there) * 100 // there),
    ],
)
@given(cluster=clusters(), pod=incoming_pods())
def test_scores_are_the_weighted_mean_of_what_is_free_or_taken(
    cluster: Cluster, pod: Pod, kind: type[ScorePlugin], points: Callable[[int, int], int]
) -> None:
    def score(node: NodeManifest) -> int:
        counted = shares(cluster, pod, node, points)
        total = sum(weight for _, weight in counted)
        return sum(value * weight for value, weight in counted) // total if total else 0

    expected = {node.name: score(node) for node in cluster.nodes}
    assert run_score(plugin(kind), pod, *cluster.nodes, pods=cluster.pods) == expected


def curve(shape: Shape, there: int, wanted: int) -> int:
    percent = 100 if wanted > there else wanted * 100 // there
    for index, (utilization, score) in enumerate(shape):
        if percent <= utilization:
            if index == 0:
                return 10 * score
            before, low = shape[index - 1]
            rise = 10 * (score - low) * (percent - before) / (utilization - before)
            return 10 * low + math.trunc(rise)
    return 10 * shape[-1][1]


@given(
    clusters(),
    incoming_pods(),
    st.dictionaries(st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=4),
)
def test_scores_follow_a_shape(cluster: Cluster, pod: Pod, drawn: dict[int, int]) -> None:
    shape = sorted(drawn.items())

    def score(node: NodeManifest) -> int:
        # What scores 0 does not count.
        counted = [each for each in shares(cluster, pod, node, partial(curve, shape)) if each[0]]
        total = sum(weight for _, weight in counted)
        return math.floor(sum(p * w for p, w in counted) / total + 0.5) if total else 0

    expected = {node.name: score(node) for node in cluster.nodes}
    assert run_score(by_shape(shape), pod, *cluster.nodes, pods=cluster.pods) == expected


@pytest.mark.parametrize("shape", [[(50, 1), (50, 2)], [(60, 1), (50, 2)]])
def test_utilization_must_rise(shape: Shape) -> None:
    with pytest.raises(ConfigurationError, match="must rise from point to point"):
        by_shape(shape)
