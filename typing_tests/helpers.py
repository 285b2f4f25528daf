"""Tests of plugins, as authors write them."""

from collections.abc import Mapping
from typing import assert_type

from plugins import ByNode, Gang, ScoreByNode

import moorage
from moorage import Allow, Binding, Nodes, Pod, Refusal, Rejection, Wait
from moorage.models import NodeManifest, Taint, Toleration
from moorage.testing import (
    assert_node_local,
    make_binding,
    make_node,
    make_nodes,
    make_pod,
    record_retries,
    run_filter,
    run_permit,
    run_pre_bind,
    run_score,
    running,
)
from moorage_pytest.simulation import Simulate, SimulatedPlacements

TAINT = Taint(key="gpu", effect="NoSchedule")


def test_builders() -> None:
    """Pods and nodes."""
    pod = make_pod("web", requests={"cpu": "500m"}, tolerations=[Toleration(key="gpu")])
    node = make_node("n1", allocatable={"cpu": 2}, taints=[TAINT], images={"app:1": 100})
    assert_type(pod, Pod)
    assert_type(node, NodeManifest)
    assert_type(make_nodes(node, pods=[pod]), Nodes)


def test_runs() -> None:
    """One plugin alone."""
    pod, node = make_pod(), make_node()
    assert_type(run_filter(ByNode(), pod, node), dict[str, Rejection | None])
    assert_type(run_score(ScoreByNode(), pod, node, pods=[make_pod(node="node")]), dict[str, float])
    assert_type(record_retries(ByNode()), list[str])
    assert_node_local(ByNode(), pod, node)
    binding = make_binding(pod, "node")
    assert_type(binding, Binding)
    assert_type(run_permit(Gang(), binding), Allow | Wait | Refusal)
    assert_type(run_pre_bind(Gang(), binding), Refusal | None)


async def test_lifetime() -> None:
    """A plugin that keeps running."""
    async with running(ByNode()):
        pass


def test_cluster(moorage_simulate: Simulate) -> None:
    """The fixture of pytest."""
    placed = moorage_simulate(ByNode, ScoreByNode, nodes=[make_node()], pods=[make_pod()])
    assert_type(placed, SimulatedPlacements)
    assert_type(placed.nodes, Mapping[str, str | None])


assert_type(moorage.__version__, str)
