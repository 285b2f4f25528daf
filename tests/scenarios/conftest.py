"""Runs each scenario on the embedded cluster, and with MOORAGE_E2E=1 on a real one too."""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e.plane import RealPlane
from tests.scenarios.planes import EmbeddedPlane, Plane
from tests.scenarios.world import World

PLANES = ("embedded", "real") if os.environ.get("MOORAGE_E2E") else ("embedded",)


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=PLANES)
async def shared_world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    directory = tmp_path_factory.mktemp(request.param)
    embedded = request.param == "embedded"
    plane: Plane = EmbeddedPlane(directory) if embedded else RealPlane(directory)
    async with World.started(plane) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def world(shared_world: World) -> AsyncIterator[World]:
    """A world that is empty before and after."""
    try:
        yield shared_world
    finally:
        await shared_world.clear()
