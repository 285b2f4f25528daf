"""A rule rejects every node that there is: what a real Karpenter does, without us and with us."""

import pytest

from tests.e2e.autoscaler.karpenter import Cluster, cool, hot

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOMINATED = "Nominated"


async def test_karpenter_alone_waits_for_a_node_that_is_rejected(cluster: Cluster) -> None:
    world = cluster.world
    await world.nodes(*map(hot, ("n1", "n2", "n3")))
    await world.create(cool("a"))
    assert "3 node is hot" in await world.condition("a", "Unschedulable")
    nominated = await world.event("a", reason=NOMINATED)
    assert nominated.startswith("Pod should schedule on: node/n")
    assert await cluster.claims() == []
    assert cluster.added == set()
