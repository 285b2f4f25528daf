"""Pod groups of Kubernetes beside claims: a group that fails leaves nothing that blocks others."""

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import NAMESPACE, node, pod
from tools.planes.real import POD_GROUPS, WITH_GROUPS, RealPlane

pytestmark = pytest.mark.asyncio(loop_scope="session")

GROUPS = f"/apis/{POD_GROUPS}/namespaces/{NAMESPACE}/podgroups"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    plane = RealPlane(tmp_path_factory.mktemp("groups"), *WITH_GROUPS)
    async with World.started(plane) as world:
        yield world


async def group(world: World, name: str, count: int) -> None:
    """Create a group that needs so many pods at once."""
    spec = {"schedulingPolicy": {"gang": {"minCount": count}}}
    made = {"apiVersion": POD_GROUPS, "kind": "PodGroup", "spec": spec}
    (await world.request("POST", GROUPS, {**made, "metadata": {"name": name}})).check()


def member(name: str, of: str) -> Object:
    """Return a pod of a group that shares its node with no other run."""
    labels = {"tekton.dev/pipelineRun": name}
    spec = {"schedulingGroup": {"podGroupName": of}}
    return pod(name, "isolated", labels=labels, spec=spec)


async def test_a_group_that_does_not_fit_holds_no_node(world: World) -> None:
    await world.nodes(node("n1"), node("n2"))
    try:
        async with world.scheduler("isolated"):
            await group(world, "three", 3)
            await world.create(*(member(f"m{i}", "three") for i in range(3)))
            await world.condition("m0", "Unschedulable")

            async def tried_again() -> bool:
                label = {"metadata": {"labels": {"example.com/tried": str(time.time())}}}
                (await world.request("PATCH", "/api/v1/nodes/n1", label)).check()
                return await world.metric("moorage_claims_total") >= 6

            # From the second pass on, the members' conditions stay as they are.
            await world.until(tried_again, 60)
            single = pod("single", "isolated", labels={"tekton.dev/pipelineRun": "single"})
            await world.create(single)
            await world.bound("single", patience=60)
            places = await world.places()
            assert not any(place for name, place in places.items() if name != "single")

            async def nothing_left() -> bool:
                return await world.metric("moorage_cache_size", type="claims") == 0

            await world.until(nothing_left, 60)
    finally:
        await world.clear()


async def test_a_group_that_fits_is_bound_as_a_whole(world: World) -> None:
    await world.nodes(*(node(f"n{i}") for i in range(4)))
    try:
        async with world.scheduler("isolated"):
            await group(world, "four", 4)
            await world.create(*(member(f"m{i}", "four") for i in range(4)))
            places = await world.bound()
            assert len(set(places.values())) == 4
            # Nothing was asked again in vain: each claim held until its bind.
            assert await world.metric("moorage_bind_checks_total", outcome="rejected") == 0
    finally:
        await world.clear()
