"""A DeviceClass changes where pods fit: the gateway follows what is in the cluster."""

import pytest

from tests.scenarios.devices import FPGA, IMPLICIT, device_class, requesting
from tests.scenarios.world import World
from tools.planes.embedded import Object
from tools.planes.objects import node

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def rejected(world: World, asked: Object) -> dict[str, str]:
    """Return why the gateway rejects n1 or n2."""
    answer = await world.filter(asked, ["n1", "n2"])
    assert answer["Error"] == ""
    return {**(answer["FailedNodes"] or {}), **(answer["FailedAndUnresolvableNodes"] or {})}


@pytest.mark.parametrize("resource", [FPGA, IMPLICIT], ids=["named", "implicit"])
async def test_a_class_that_comes_and_goes_changes_where_a_pod_fits(
    world: World, resource: str
) -> None:
    await world.nodes(node("n1"), node("n2"))
    (asked,) = await world.create(requesting("p", resource))
    missing = f"Insufficient {resource}"
    assert await rejected(world, asked) == {"n1": missing, "n2": missing}
    await world.create(device_class())

    async def passes() -> bool:
        return await rejected(world, asked) == {}

    async def is_rejected() -> bool:
        return not await passes()

    await world.until(passes)
    await world.remove(device_class())
    await world.until(is_rejected)
