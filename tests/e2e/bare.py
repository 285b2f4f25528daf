"""A real control plane for several modules, one after another, so that it is started once.

They say `pytest_plugins = ["tests.e2e.bare"]`, ask for `bare`, and leave neither nodes nor
pods behind.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from moorage_host.kube import connect
from tests.scenarios.services import Services
from tests.scenarios.world import World
from tools.planes.real import RealPlane


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A world in which nothing of Moorage is started."""
    plane = RealPlane(tmp_path_factory.mktemp("bare"))
    try:
        await plane.start()
        client = await connect(plane.kubeconfig("admin"))
        try:
            yield World(plane, Services(plane), client)
        finally:
            await client.close()
    finally:
        await plane.stop()
