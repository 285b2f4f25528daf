"""Pods of a pod group: the first line has how much of the group is placed."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from cli.decisions.explain import explained
from cli.shared.gateway.options import GatewayOptions
from tests.scenarios.conftest import PLANES
from tests.scenarios.world import PODS, World, profiles
from tools.planes.embedded import EmbeddedPlane, Object, Plane
from tools.planes.objects import NAMESPACE, pod
from tools.planes.real import POD_GROUPS, WITH_GROUPS, RealPlane

pytestmark = pytest.mark.asyncio(loop_scope="session")

GROUPS = f"/apis/{POD_GROUPS}/namespaces/{NAMESPACE}/podgroups"
MESSAGE = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=PLANES)
async def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    directory = tmp_path_factory.mktemp(request.param)
    embedded = request.param == "embedded"
    plane: Plane = (
        EmbeddedPlane(directory)
        if embedded
        else RealPlane(directory, *WITH_GROUPS, profiles=profiles())
    )
    async with World.started(plane) as started:
        yield started


def member(name: str, **spec: str) -> Object:
    return pod(name, spec={"schedulingGroup": {"podGroupName": "ring"}, **spec})


async def test_members_wait_for_each_other(world: World) -> None:
    async def asked(name: str) -> tuple[str, str]:
        options = GatewayOptions(
            admin=world.services.admin, kubeconfig=world.plane.kubeconfig("admin")
        )
        found = await explained(f"{NAMESPACE}/{name}", "", options)
        return found.headline, str(found.group)

    async def says(name: str, start: str) -> None:
        async def there() -> bool:
            return (await asked(name))[0].startswith(start)

        await world.until(there)

    group = {
        "apiVersion": POD_GROUPS,
        "kind": "PodGroup",
        "metadata": {"name": "ring"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    (await world.request("POST", GROUPS, group)).check()
    await world.create(member("first", nodeName="n1"), member("second"))
    await says(
        "second",
        "default/second is pending, 1/3 of its pod group placed: pod group ring has 2 pods, and "
        "needs 3 at once",
    )
    await world.create(member("third"))
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": MESSAGE,
    }
    status = {"status": {"conditions": [condition]}}
    (await world.request("PATCH", f"{PODS}/third/status", status)).check()
    await says(
        "third",
        "default/third is pending, 1/3 of its pod group placed: none of 3 nodes suits it: "
        "2 Insufficient cpu (kube-scheduler), 1 node(s) were unschedulable (kube-scheduler)",
    )
    assert (await asked("third"))[1] == (
        "Pod group ring: 1/3 placed, 3 needed at once; nodes: n1 accepted 1"
    )
