"""Cluster Autoscaler, by its source: which placeholders make it add a node, and which do not."""

from typing import Any

import msgspec
import pytest

from cli.capacity.autoscalers import AUTOSCALERS, EXISTING
from cli.capacity.placeholder import placeholder_manifest
from moorage.models import decode_node, decode_pod
from tests.cluster_autoscaler import HOSTNAME, NodeGroup, Object, nodes_added
from tools.planes.objects import node, pod

HOT = [node(f"hot-{n}", labels={HOSTNAME: f"hot-{n}", EXISTING: "true"}) for n in range(3)]
GROUP = NodeGroup(HOT[0], room=3)
STATUS = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def waiting(name: str) -> Object:
    made = pod(name, "heated", cpu="3")
    return {**made, "metadata": {**made["metadata"], "uid": name}, "status": STATUS}


def placeholder(of: Object, autoscaler: str = "cluster-autoscaler", **spec: Any) -> Object:
    nodes = [decode_node(msgspec.json.encode(each)) for each in HOT]
    other = AUTOSCALERS[autoscaler].other_than(nodes)
    assert other is not None
    made = placeholder_manifest(
        of, decode_pod(msgspec.json.encode(of)), autoscaler=autoscaler, requirements=[other]
    )
    metadata = {**made["metadata"], "uid": made["metadata"]["name"]}
    return {**made, "metadata": metadata, "spec": {**made["spec"], **spec}, "status": STATUS}


PODS = [waiting(f"p{number}") for number in range(8)]


@pytest.mark.parametrize(
    ("pods", "added"),
    [
        (PODS[:5], 0),
        ([PODS[0], placeholder(PODS[0])], 1),
        ([*PODS[:5], *map(placeholder, PODS[:4])], 2),
        ([*map(placeholder, PODS)], 3),
        ([placeholder(PODS[0], "karpenter")], 0),
        ([placeholder(PODS[0], priority=-11)], 0),
        ([placeholder(PODS[0], nodeName="hot-0")], 0),
        ([{**placeholder(PODS[0]), "status": {}}], 0),
    ],
    ids=[
        "the pods alone fit nodes that exist",
        "a placeholder fits none that exists",
        "two fit a new node",
        "no more than the group has room for",
        "a template has the label of nodes that exist",
        "pods of a very low priority are expendable",
        "it has a node",
        "nobody says that it is unschedulable",
    ],
)
async def test_nodes_are_added_for(pods: list[Object], added: int) -> None:
    assert await nodes_added(HOT, pods, GROUP) == added
