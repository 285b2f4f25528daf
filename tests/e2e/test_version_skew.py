"""Processes of the last release and of this tree work together, as they must during an upgrade."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from moorage_host.kube import connect
from tests.scenarios.services import Services
from tests.scenarios.world import World
from tools.planes.objects import node, pod
from tools.planes.real import RealPlane
from tools.release.released import last_release

pytestmark = pytest.mark.asyncio(loop_scope="session")

OLD = {
    "services": ("filter", "scorer", "binder"),
    "gateway": ("gateway",),
    "one scorer": ("scorer-2",),
}
"""Which processes are of the last release; all others are of this tree."""


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the last release."""
    return last_release().extract(tmp_path_factory.mktemp("released"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plane(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealPlane]:
    made = RealPlane(tmp_path_factory.mktemp("skew"))
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


@pytest.mark.parametrize("old", OLD)
async def test_pods_are_bound_and_decisions_kept(
    old: str, plane: RealPlane, released: Path
) -> None:
    services = Services(plane, trees=dict.fromkeys(OLD[old], released))
    async with AsyncExitStack() as stack:
        client = await connect(plane.kubeconfig("admin"))
        stack.push_async_callback(client.close)
        await services.start(stack)
        for name in OLD[old]:
            started = {k: v for k, v in services.programs.items() if k.startswith(name)}
            for program in started.values():
                assert_runs(released, program.environment)
        world = World(plane, services, client)
        stack.push_async_callback(world.clear)
        await place(world)


async def place(world: World) -> None:
    """Let every phase matter: filter, score, bind, the rejection of a pod, and what is kept."""
    await world.nodes(node("n1"), node("n2"), node("n3"))
    async with world.scheduler():
        await world.create(
            pod("scored", reject={"n1": "no"}, score={"n2": 10, "n3": 90}),
            pod("stuck", reject={f"n{i}": "all are full" for i in (1, 2, 3)}),
        )
        assert (await world.bound("scored"))["scored"] == "n3"
        assert "all are full" in await world.event("stuck")

        async def kept() -> bool:
            return bool((await world.decision("scored"))["outcome"] == "bound")

        await world.until(kept)
    decision = await world.decision("scored")
    assert decision["filter"]["feasible"] == 2
    assert decision["score"]["nodes"] == 2


def assert_runs(tree: Path, environment: dict[str, str]) -> None:
    """Check that Python takes our modules from a tree."""
    command = [sys.executable, "-P", "-c", "import gateway; print(gateway.__file__)"]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=100
    )
    assert Path(run.stdout.strip()).is_relative_to(tree)
