"""Pods of a pod group: the first line has how much of the group is placed."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import msgspec
import pytest
import pytest_asyncio

from cli.decisions.explain import explained
from cli.shared.gateway.options import GatewayOptions
from moorage_host.kube import KubeClient, connect
from tests.scenarios.conftest import PLANES
from tests.scenarios.services import profiles
from tests.scenarios.world import PODS
from tools.planes.embedded import EmbeddedPlane, Object, Plane
from tools.planes.objects import NAMESPACE, pod
from tools.planes.real import POD_GROUPS, WITH_GROUPS, RealPlane

pytestmark = pytest.mark.asyncio(loop_scope="session")

GROUPS = f"/apis/{POD_GROUPS}/namespaces/{NAMESPACE}/podgroups"
MESSAGE = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=PLANES)
async def plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Plane]:
    directory = tmp_path_factory.mktemp(request.param)
    embedded = request.param == "embedded"
    started: Plane = (
        EmbeddedPlane(directory)
        if embedded
        else RealPlane(directory, *WITH_GROUPS, profiles=profiles())
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(started.stop)
        await started.start()
        yield started


async def write(client: KubeClient, method: str, path: str, body: Object) -> None:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    content = msgspec.json.encode(body)
    answer = await client.request(method, path, body=content, content_type=kind, timeout=30)
    answer.check()


def member(name: str, **spec: str) -> Object:
    return pod(name, spec={"schedulingGroup": {"podGroupName": "ring"}, **spec})


async def test_members_wait_for_each_other(plane: Plane) -> None:
    config = plane.kubeconfig("admin")
    client = await connect(config)

    async def asked(name: str) -> tuple[str, str]:
        options = GatewayOptions(kubeconfig=config)
        answer = await explained(f"{NAMESPACE}/{name}", "", options)
        return answer.found.headline, str(answer.known.group)

    try:
        group = {
            "apiVersion": POD_GROUPS,
            "kind": "PodGroup",
            "metadata": {"name": "ring"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
        }
        await write(client, "POST", GROUPS, group)
        await write(client, "POST", PODS, member("first", nodeName="n1"))
        await write(client, "POST", PODS, member("second"))
        line, _ = await asked("second")
        assert line == (
            "default/second is pending, 1/3 of its pod group placed: pod group ring has 2 pods, "
            "and needs 3 at once"
        )
        await write(client, "POST", PODS, member("third"))
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": MESSAGE,
        }
        status = {"status": {"conditions": [condition]}}
        await write(client, "PATCH", f"{PODS}/third/status", status)
        line, nodes = await asked("third")
        assert line.startswith(
            "default/third is pending, 1/3 of its pod group placed: none of 3 nodes suits it: "
            "2 Insufficient cpu, 1 node(s) were unschedulable; who rejected them is not known: no "
            "gateway runs in namespace moorage"
        )
        assert nodes == ("Pod group ring: 1/3 placed, 3 needed at once; nodes: n1 accepted 1")
    finally:
        await client.close()
