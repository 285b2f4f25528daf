"""Two tenants with RBAC of a real API server, each with the token of a service account."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from cli.certs.certificates import keep_certificates
from moorage_host.kube import connect
from tests.scenarios.services import Services
from tests.scenarios.tenants import TENANTS, check_tenants, create_tenants
from tests.scenarios.world import World
from tools.planes.real import RealPlane

pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMESPACE = "default"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("certs")
    keep_certificates(root)
    return root


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory, folders: Path) -> AsyncIterator[World]:
    plane = RealPlane(tmp_path_factory.mktemp("tenants"))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(plane.stop)
        await plane.start()
        client = await connect(plane.kubeconfig("admin"))
        stack.push_async_callback(client.close)
        services = Services(plane, through_proxy=False, certificates=folders)
        await services.start(stack)
        yield World(plane, services, client)


async def test_tenants_see_their_own_pods_alone(world: World, folders: Path) -> None:
    async def create(path: str, body: Any) -> None:
        answer = await world.request("POST", path, body)
        assert answer.status in (201, 409), answer.body

    tokens = {tenant: await token(world, f"person-of-{tenant}") for tenant in TENANTS}
    account = {"kind": "ServiceAccount", "namespace": NAMESPACE}
    subjects = {tenant: {**account, "name": f"person-of-{tenant}"} for tenant in TENANTS}
    await create_tenants(create, subjects)
    await check_tenants(world.services, folders, tokens)


async def token(world: World, account: str) -> str:
    """Make a service account; return a token of it."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}
    (await world.request("POST", ACCOUNTS, body)).check()
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await world.request("POST", f"{ACCOUNTS}/{account}/token", asked)
    made: str = msgspec.json.decode(answer.check().body)["status"]["token"]
    return made
