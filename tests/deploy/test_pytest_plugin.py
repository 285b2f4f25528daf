"""A project with a plugin, tested by pytest in an environment that has the wheel."""

import subprocess
from pathlib import Path

from tests.deploy.wheel import run

PLUGIN = '''\
from moorage import Arguments, FilterPlugin, Node, Pod, Rejection


class MaxTemperature(FilterPlugin):
    """Keeps pods off nodes that run hot."""

    class Args(Arguments):
        limit: float = 80.0

    def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
        if float(node.annotations.get("example.com/temperature", 0)) > self.args.limit:
            return Rejection("node is too hot")
        return None
'''

TESTS = """\
import pytest
from max_temperature import MaxTemperature
from moorage.testing import make_node, make_pod, run_filter
from moorage_pytest.simulation import Simulate, SimulationError

HOT = make_node("hot", annotations={"example.com/temperature": "90"}, allocatable={"cpu": "8"})
COOL = make_node("cool", allocatable={"cpu": "2"})


def test_alone() -> None:
    assert run_filter(MaxTemperature(), make_pod(), COOL) == {"cool": None}


def test_in_a_cluster(moorage_simulate: Simulate) -> None:
    large = make_pod("large", requests={"cpu": "3"})
    placed = moorage_simulate(MaxTemperature, nodes=[HOT, COOL], pods=[make_pod("web"), large])
    assert placed.nodes == {"web": "cool", "large": None}
    assert "1 Insufficient cpu (NodeResourcesFit)" in placed.reasons["large"]
    assert "1 node is too hot (MaxTemperature)" in placed.reasons["large"]


def test_arguments_and_pods_that_are_there(moorage_simulate: Simulate) -> None:
    full = make_pod("full", node="cool", requests={"cpu": "2"})
    placed = moorage_simulate(
        MaxTemperature,
        nodes=[HOT, COOL],
        pods=[make_pod("web", namespace="shop", requests={"cpu": "1"})],
        existing=[full],
        arguments={"MaxTemperature": {"limit": 95}},
    )
    assert placed.nodes == {"shop/web": "hot"}


def test_arguments_that_the_plugin_refuses(moorage_simulate: Simulate) -> None:
    with pytest.raises(SimulationError, match="limit"):
        moorage_simulate(
            MaxTemperature,
            nodes=[COOL],
            pods=[make_pod()],
            arguments={"MaxTemperature": {"limit": "warm"}},
        )
"""


def test_fixtures_are_there_without_a_conftest(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "max_temperature.py").write_text(PLUGIN)
    (tmp_path / "test_max_temperature.py").write_text(TESTS)
    command = (programs / "python", "-m", "pytest", "-p", "no:asyncio", "-W", "error", "-q")
    out = run(*command, folder=tmp_path)
    assert "4 passed" in out


def test_the_plugin_of_pytest_imports_neither_moorage_nor_numpy(
    programs: Path, tmp_path: Path
) -> None:
    """`pytest --fixtures` loads it, and takes no longer for it."""
    (tmp_path / "conftest.py").write_text(
        "import sys\n\n\ndef pytest_sessionfinish():\n"
        "    print('IMPORTED', sorted({'moorage', 'numpy', 'msgspec'} & sys.modules.keys()))\n"
    )
    command = [str(programs / "python"), "-m", "pytest", "--fixtures", "-p", "no:hypothesispytest"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100
    )
    assert "moorage_simulate -- " in done.stdout
    assert "IMPORTED []" in done.stdout
