"""Processes of the last release and of this tree work together, as they must during an upgrade."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.scenarios.world import World, scenarios_policy
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
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with World.bare(RealPlane(tmp_path_factory.mktemp("skew"))) as world:
        yield world


@pytest.mark.parametrize("old", OLD)
async def test_pods_are_bound_and_decisions_kept(old: str, bare: World, released: Path) -> None:
    def environment(name: str) -> dict[str, str]:
        is_old = name.startswith(OLD[old])
        return {"PYTHONPATH": f"{released}:{released / 'sdk'}"} if is_old else {}

    policy = scenarios_policy(bare.plane.directory)
    # The other tree may lack the plugins of other profiles.
    policy["profiles"] = [p for p in policy["profiles"] if p["schedulerName"] == "steered"]
    async with bare.with_moorage(policy, environment=environment) as world:
        for name, program in world.services.programs.items():
            if name.startswith(OLD[old]):
                assert_runs(released, program.environment)
        try:
            await place(world)
        finally:
            await world.clear()


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
