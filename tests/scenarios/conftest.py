"""Runs each scenario on the embedded cluster, or on a real one: MOORAGE_E2E=1."""

import os
from collections.abc import AsyncIterator, Generator

import pytest
import pytest_asyncio

from tests.scenarios.world import World, profiles
from tools.planes.embedded import EmbeddedPlane, Plane
from tools.planes.real import RealPlane

PLANES = ("real",) if os.environ.get("MOORAGE_E2E") else ("embedded",)


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=PLANES)
async def shared_world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    directory = tmp_path_factory.mktemp(request.param)
    embedded = request.param == "embedded"
    plane: Plane = (
        EmbeddedPlane(directory) if embedded else RealPlane(directory, profiles=profiles())
    )
    async with World.started(plane) as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def world(shared_world: World) -> AsyncIterator[World]:
    """A world that is empty before and after, in which replicas confirm what was cached."""
    try:
        yield shared_world
    finally:
        await shared_world.clear()
    for phase in ("filter", "score"):
        assert await shared_world.metric("moorage_cache_differences_total", phase=phase) == 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave scenarios that Moorage decides alone to the embedded cluster."""
    if PLANES == ("real",):
        left = [item for item in items if item.get_closest_marker("embedded_alone")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the ends of all logs with a failure."""
    report = yield
    world = getattr(item, "funcargs", {}).get("world")
    if report.failed and isinstance(world, World):
        for program in world.programs():
            report.sections.append((f"log of {program.name}", program.last_words()))
    return report
