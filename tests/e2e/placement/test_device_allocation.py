"""Beside Moorage a pod gets its device as without it, by a resource (KEP-5004) or a claim."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.scenarios.devices import (
    FPGA,
    IMPLICIT,
    claim,
    claiming,
    device_class,
    requesting,
    resource_slice,
)
from tests.scenarios.world import World
from tools.planes.embedded import Object, shipped_config
from tools.planes.objects import NAMESPACE, node

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_world(bare: World) -> AsyncIterator[World]:
    async with bare.with_moorage() as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def world(shared_world: World) -> AsyncIterator[World]:
    """A world that is empty before and after."""
    world = shared_world
    try:
        yield world
    finally:
        # Without a controller manager nobody deletes the claims of pods that are gone.
        for claim in (await world.read(CLAIMS))["items"]:
            path = f"{CLAIMS}/{claim['metadata']['name']}"
            await world.request("PATCH", path, {"metadata": {"finalizers": None}})
            await world.request("DELETE", path)
        await world.clear()


def alone() -> Object:
    """Return the configuration of a kube-scheduler without extenders."""
    config = shipped_config() | {"extenders": [], "leaderElection": {"leaderElect": False}}
    return config | {"profiles": [{"schedulerName": "fitting"}]}


async def create(world: World, name: str, resource: str) -> None:
    """Create a pod that needs a device, by a resource or by a claim."""
    if resource:
        await world.create(requesting(name, resource))
    else:
        (await world.request("POST", CLAIMS, claim(name))).check()
        await world.create(claiming(name))


@pytest.mark.parametrize("resource", [FPGA, IMPLICIT, ""], ids=["named", "implicit", "claim"])
async def test_a_pod_gets_its_device_beside_moorage_as_without_it(
    world: World, resource: str
) -> None:
    await world.create(device_class(), resource_slice("n2", devices=2))
    await world.nodes(node("n1"), node("n2"), node("n3"))
    async with world.configured_scheduler("alone", alone()):
        await create(world, "without", resource)
        await world.bound("without")
    async with world.scheduler("fitting"):
        await create(world, "beside", resource)
        places = await world.bound("beside")
        assert places == {"without": "n2", "beside": "n2"}
        # Both have a device of their own, so there is none left.
        await create(world, "late", resource)
        message = await world.condition("late", "Unschedulable")
    assert "0/3 nodes are available: 3 cannot allocate all claims" in message
    async with world.configured_scheduler("alone", alone()):
        await create(world, "later", resource)
        assert await world.condition("later", "Unschedulable") == message
    pods = await world.pods()
    wanted = [resource] if resource else []
    assert allocated(pods["without"]) == allocated(pods["beside"]) == wanted
    devices = {
        holder["name"]: result["device"]
        for each in (await world.read(CLAIMS))["items"]
        for holder in each.get("status", {}).get("reservedFor", ())
        for result in each["status"]["allocation"]["devices"]["results"]
    }
    assert devices.keys() == {"without", "beside"}
    assert sorted(devices.values()) == ["device-0", "device-1"]


def allocated(obj: Object) -> list[str]:
    """Return the resources for which a pod has devices."""
    status = obj["status"].get("extendedResourceClaimStatus", {})
    return [mapping["resourceName"] for mapping in status.get("requestMappings", ())]
