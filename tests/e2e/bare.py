"""A real control plane for several modules, one after another, so that it is started once.

They say `pytest_plugins = ["tests.e2e.bare"]`, ask for `bare`, and leave neither nodes nor
pods behind.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.scenarios.world import World
from tools.planes.real import RealPlane


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A world in which nothing of Moorage is started."""
    async with World.bare(RealPlane(tmp_path_factory.mktemp("bare"))) as world:
        yield world
