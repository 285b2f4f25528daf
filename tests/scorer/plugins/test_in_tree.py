"""What kube-scheduler's scores are told by arguments, and mistakes in them.

The scores themselves are in `tests/scorer/test_golden_scores.py`.
"""

from typing import Any

import pytest

from moorage import ConfigurationError, ScorePlugin
from moorage.in_tree.scores.image_locality import ImageLocality
from moorage.in_tree.scores.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from moorage.in_tree.scores.node_resources_least_allocated import NodeResourcesLeastAllocated
from moorage.in_tree.scores.node_resources_most_allocated import NodeResourcesMostAllocated
from moorage.in_tree.scores.pod_topology_spread import PodTopologySpread
from moorage.in_tree.scores.requested_to_capacity_ratio import RequestedToCapacityRatio
from moorage.models import OwnerReference
from moorage.testing import make_node, make_pod, run_score
from moorage_host.policy.checks import check_arguments
from tests.clusters import GPU

ZONE = "topology.kubernetes.io/zone"
MIB = 1024 * 1024
CPU_ALONE = [{"name": "cpu"}]


def make(kind: type[ScorePlugin], **args: Any) -> ScorePlugin:
    return kind(check_arguments(args, kind.Args, "args"))


def shape(*points: tuple[int, int]) -> dict[str, Any]:
    return {"shape": [{"utilization": used, "score": score} for used, score in points]}


@pytest.mark.parametrize(
    ("kind", "args", "problem"),
    [
        (ImageLocality, {"minThreshold": 2**40}, "maxContainerThreshold must be larger"),
        (RequestedToCapacityRatio, shape((50, 1), (50, 2)), "must rise from point to point"),
        (RequestedToCapacityRatio, shape((60, 1), (50, 2)), "must rise from point to point"),
    ],
)
def test_mistakes_are_refused(kind: type[ScorePlugin], args: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        make(kind, **args)


def test_thresholds_of_images_are_arguments() -> None:
    plugin = make(ImageLocality, minThreshold=0, maxContainerThreshold=10 * MIB)
    node = make_node("n1", images={"app:v1": 5 * MIB})
    assert run_score(plugin, make_pod(image="app:v1"), node) == {"n1": 50}


WEIGHTS = {"cpu": 2, "memory": 3, GPU: 5}
WEIGHTED: dict[str, Any] = {"resources": [{"name": k, "weight": n} for k, n in WEIGHTS.items()]}
THREE: dict[str, Any] = {"resources": [{"name": name} for name in WEIGHTS]}


@pytest.mark.parametrize(
    ("plugin", "cpu", "gpus", "score"),
    [
        (make(NodeResourcesLeastAllocated, **WEIGHTED), "1", 1, 37),  # 75, 75 and 0
        (make(NodeResourcesMostAllocated, **WEIGHTED), "1", 1, 62),  # 25, 25 and 100
        (make(RequestedToCapacityRatio, **WEIGHTED), "1", 1, 63),  # and rounded
        (make(RequestedToCapacityRatio, **WEIGHTED, **shape((50, 2), (100, 10))), "1", 1, 60),
        (make(NodeResourcesMostAllocated, resources=CPU_ALONE), "1", 0, 25),
        (RequestedToCapacityRatio(), "3", 0, 50),  # cpu 75 %, memory 25 %: fuller is better
        # cpu 100 % scores 0, which does not count: memory 75 / 1
        (make(RequestedToCapacityRatio, **shape((0, 10), (100, 0))), "4", 0, 75),
        # 25 %, 25 % and 100 % deviate by 35 %; before the pod nothing deviated
        (make(NodeResourcesBalancedAllocation, **THREE, form="older"), "1", 1, 64),
        (make(NodeResourcesBalancedAllocation, **THREE), "1", 1, 57),
        (make(NodeResourcesBalancedAllocation, resources=CPU_ALONE, form="older"), "1", 0, 100),
    ],
)
def test_resources_are_scored_by_the_arguments(
    plugin: ScorePlugin, cpu: str, gpus: int, score: float
) -> None:
    space = {"cpu": "4", "memory": "8Gi", "pods": "110", GPU: "1"}
    requests = {"cpu": cpu, "memory": "2Gi", **({GPU: str(gpus)} if gpus else {})}
    nodes = make_node("n1", allocatable=space), make_node("without a GPU")
    assert run_score(plugin, make_pod(requests=requests), *nodes)["n1"] == score


NODES = (
    *(make_node(name, labels={ZONE: name[0]}) for name in ("a1", "a2", "b1")),
    make_node("x"),
)
# Hosts 2, 1, 1, 1; zones a 3, b 1
PODS = tuple(
    make_pod(f"p{i}", labels={"app": "web"}, node=node)
    for i, node in enumerate(("a1", "a1", "a2", "b1", "x"))
)


def test_a_list_of_defaults_replaces_those_of_the_system_and_wants_all_labels() -> None:
    zones = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    owner = OwnerReference(kind="ReplicaSet", name="web", controller=True)
    pod = make_pod("new", labels={"app": "web"}, owner=owner)
    for listed, scores in (([zones], {"a1": 25, "a2": 25, "b1": 100, "x": 0}), ([], {})):
        plugin = make(PodTopologySpread, defaultingType="List", defaultConstraints=listed)
        assert run_score(plugin, pod, *NODES, pods=PODS) == scores
    # Hosts: ln(4+2) = 1.792 and + 2; zones: a, b and none, ln(3+2) = 1.609 and + 4, not for x.
    # a1 3.58 + 2 + 4.83 + 4 = 14.41 -> 14; a2 1.79 + 2 + 4.83 + 4 = 12.62 -> 13;
    # b1 1.79 + 2 + 1.61 + 4 = 9.40 -> 9; x 1.79 + 2 = 3.79 -> 4
    # 100 * (14 + 4 - n) // 14
    by_system = run_score(PodTopologySpread(), pod, *NODES, pods=PODS)
    assert by_system == {"a1": 28, "a2": 35, "b1": 64, "x": 100}
