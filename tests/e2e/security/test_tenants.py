"""Two tenants with RBAC of a real API server, each with the token of a service account."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tests.scenarios.tenants import TENANTS, check_tenants, create_tenants
from tests.scenarios.world import World

pytest_plugins = ["tests.e2e.bare"]
pytestmark = pytest.mark.asyncio(loop_scope="session")

NAMESPACE = "default"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(bare: World, folders: Path) -> AsyncIterator[World]:
    async with bare.secured(folders) as world:
        yield world


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
