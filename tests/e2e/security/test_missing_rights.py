"""A gateway that may not read what a plugin reads says so, and goes on once it may."""

import asyncio

import aiohttp
import pytest

from tests.scenarios.world import World
from tools.planes.real import deployed_objects, path_of

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

ROLE = "moorage-gateway-stateful-sets"


async def test_the_missing_right_is_named_until_it_is_given(bare: World) -> None:
    (binding,) = (
        obj
        for obj in deployed_objects()
        if (obj["kind"], obj["metadata"]["name"]) == ("ClusterRoleBinding", ROLE)
    )
    async with bare.with_moorage() as world:
        gateway = world.services.programs["gateway"]
        await gateway.stop()
        (await world.request("DELETE", f"{path_of(binding)}/{ROLE}")).check()
        async with asyncio.TaskGroup() as group:
            starting = group.create_task(gateway.start())
            problem = ""

            async def refused() -> bool:
                nonlocal problem
                problem = (await problems(world.services.admin)).get("objects", "")
                return problem.count("403") == 2

            await world.until(refused)
            assert not starting.done()
            for text in (
                "statefulsets.apps, read by StatefulSetZone: not read yet: GET /apis/apps/v1",
                'resource "statefulsets" in API group "apps" at the cluster scope',
                "needs the verbs list and watch for persistentvolumes",
            ):
                assert text in problem
            (await world.request("POST", path_of(binding), binding)).check()
        assert await problems(world.services.admin) == {}


async def problems(admin: str) -> dict[str, str]:
    """Return what is not ready at the gateway, and why; nothing while it does not answer."""
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{admin}/readyz") as response:
            checks = (await response.json()).get("checks", ())
    except aiohttp.ClientConnectionError:
        return {}
    return {check["name"]: check["reason"] for check in checks}
