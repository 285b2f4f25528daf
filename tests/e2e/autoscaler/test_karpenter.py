"""A rule rejects every node that there is: what a real Karpenter does, without us and with us."""

import pytest

from tests.e2e.autoscaler.karpenter import Cluster, cool
from tests.e2e.rights import Right, given, used

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOMINATED = "Nominated"


async def test_karpenter_alone_waits_for_a_node_that_is_rejected(cluster: Cluster) -> None:
    world = cluster.world
    await world.create(cool("a"))
    assert "3 node is hot" in await world.condition("a", "Unschedulable")
    nominated = await world.event("a", reason=NOMINATED)
    assert nominated.startswith("Pod should schedule on: node/hot-")
    assert await cluster.claims() == []
    assert cluster.added == set()


async def test_a_node_is_added_for_it_and_the_pod_is_bound_there(cluster: Cluster) -> None:
    world = cluster.world
    async with cluster.controller():
        await world.create(cool("a"))
        places = await world.bound("a")
        assert places["a"] in cluster.added
        await world.until(cluster.has_no_placeholder)
    assert len(cluster.added) == 1
    asked = await world.events("a", "NodeAsked")
    assert asked == ["a node was asked for (Karpenter)"]


async def test_the_controller_has_used_its_rights_and_wanted_no_other(cluster: Cluster) -> None:
    log = cluster.world.plane.audit_log
    counted_up = Right("events.k8s.io", "events", "patch")  # of an Event that is said again
    assert used(log, "capacity") | {counted_up} == given("capacity")
    assert used(log, "capacity", "forbid") == set()
