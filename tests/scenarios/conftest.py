"""Runs each scenario on the embedded cluster, or on a real one: MOORAGE_E2E=1."""

import os
import re
from collections.abc import AsyncIterator, Generator

import pytest
import pytest_asyncio

from tests.scenarios.services import profiles
from tests.scenarios.world import World
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how each scenario ended on a real control plane."""
    if PLANES == ("embedded",):
        return
    table = _results(terminalreporter)
    width = max(map(len, table), default=0)
    terminalreporter.section("scenarios")
    for scenario, ends in table.items():
        cells = "  ".join(f"{ends.get(plane, '-'):>16}" for plane in PLANES)
        terminalreporter.write_line(f"{scenario:{width}}  {cells}")
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties if report.when == "call" else ():
            terminalreporter.write_line(f"{name}: {value}")


def _results(reporter: pytest.TerminalReporter) -> dict[str, dict[str, str]]:
    table: dict[str, dict[str, str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in reporter.stats.get(outcome, ()):
            found = re.fullmatch(
                r".*::test_(\w+)\[(embedded|real)(?:-(.*))?\](?:@\w+)?", report.nodeid
            )
            if found and (report.when == "call" or outcome != "passed"):
                name = " ".join([found[1].replace("_", " "), *filter(None, [found[3]])])
                end = f"{outcome} {report.duration:6.1f} s"
                table.setdefault(name, {})[found[2]] = end
    return table
