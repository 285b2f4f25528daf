"""What a replica does with plugins, their versions, and scores until there is a ranking."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import FilterPlugin, Nodes, Pod
from moorage.errors import TooManyNodesError
from moorage.execution import Profile, Supervisor
from moorage.models import encode
from moorage.testing import make_node, make_pod
from moorage_host.plugins import CycleInput, Replica
from moorage_host.plugins.host import Policy
from moorage_host.plugins.ranking import FEW, best, compact, weighted_mean
from moorage_host.plugins.registry import Registry, load_registry
from moorage_host.rpc.describe import describe_plugin


async def names_and_pods(
    _profile: Profile, _pod: Pod, nodes: Nodes, _supervisor: Supervisor
) -> list[tuple[str, list[str]]]:
    return [(node.name, sorted(pod.name for pod in node.pods)) for node in nodes]


@pytest.fixture
def replica() -> Replica:
    replica = Replica()
    replica.policy = Policy(profiles={"m": Profile(name="m", plugins=())})
    replica.set_nodes((row, encode(make_node(f"n{row}"))) for row in range(3))
    replica.place_pods([(1, encode(make_pod("a"))), (1, encode(make_pod("b")))])
    replica.generation = 7
    return replica


async def run(replica: Replica, **overrides: Any) -> list[tuple[str, list[str]]]:
    cycle = CycleInput(profile="m", pod=make_pod("incoming"), **overrides)
    nodes, result = await replica.run(cycle, names_and_pods, Supervisor())
    assert nodes.names == [name for name, _ in result]
    return result


ALL = [("n0", []), ("n1", ["a", "b"]), ("n2", [])]


async def test_unknown_nodes_of_a_call_leave_no_trace_in_the_tables(replica: Replica) -> None:
    before = replica.snapshot.capacity
    for call in range(20):
        given = tuple(make_node(f"made-up-{call}-{i}") for i in range(5))
        names = tuple(node.name for node in given)
        assert await run(replica, given=given, names=names) == [(name, []) for name in names]
    assert replica.snapshot.capacity == before
    assert await run(replica) == ALL


async def test_nodes_of_a_call_fit_beside_a_full_table() -> None:
    replica = Replica(max_nodes=64)
    replica.policy = Policy(profiles={"m": Profile(name="m", plugins=())})
    replica.set_nodes((row, encode(make_node(f"n{row}"))) for row in range(64))
    replica.generation = 1
    given = make_node("n1"), make_node("new")
    assert await run(replica, given=given, names=("new",)) == [("new", [])]


@pytest.mark.parametrize("row", [131_074, 2**28, 2**32 - 1])
async def test_rows_beyond_the_limit_are_refused_and_change_nothing(
    replica: Replica, row: int
) -> None:
    before = replica.snapshot.capacity
    with pytest.raises(TooManyNodesError, match=f"row {row} is beyond the limit of 131072 nodes"):
        replica.set_nodes([(row, encode(make_node("far")))])
    with pytest.raises(TooManyNodesError, match="beyond the limit of 131074 nodes"):
        await run(replica, overrides={row: make_node("far"), row - 1: make_node("near")})
    assert replica.snapshot.capacity == before
    assert await run(replica) == ALL


CODE = """
from moorage import FilterPlugin

class Picky(FilterPlugin):
    '''Rejects nothing.'''

    limit = {limit}

    def filter_node(self, pod, node):
        return None
"""


HELPED = """
from moorage import FilterPlugin

class Helped(FilterPlugin):
    '''Asks a helper.'''

    def filter_node(self, pod, node):
        from helper import verdict
        return verdict(node)
"""


def helped(folder: Path, **files: str) -> str:
    """Return the version of a plugin beside other files."""
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "helped.py").write_text(HELPED)
    registry = load_registry(FilterPlugin, (), [folder / "helped.py"])
    return describe_plugin(registry, "Helped").version


def test_what_a_plugin_imports_from_its_folder_counts_and_other_files_do_not(
    tmp_path: Path,
) -> None:
    first = helped(tmp_path / "a", helper="import deeper", deeper="limit = 1")
    assert len(first) == 16
    same = helped(tmp_path / "b", helper="import deeper", deeper="limit = 1", other="limit = 3")
    assert same == first, "wherever it is, and whatever is beside it"
    for number, files in enumerate(
        (
            {"helper": "import deeper", "deeper": "limit = 2"},
            {"helper": "import deeper\nx = 1", "deeper": "limit = 1"},
            {"helper": "import deeper"},
        )
    ):
        assert helped(tmp_path / str(number), **files) != first


@pytest.mark.parametrize(
    "line", ["from .rules import limit", "from acme.rules import limit", "from . import rules"]
)
def test_what_a_plugin_imports_from_its_package_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "acme"
    package.mkdir()
    (package / "__init__.py").write_text("")
    versions = []
    for limit in (1, 2, 1):
        (package / "picky.py").write_text(f"{line}\n" + CODE.format(limit=0))
        (package / "rules.py").write_text(f"limit = {limit}\n")
        for name in [name for name in sys.modules if name.partition(".")[0] == "acme"]:
            monkeypatch.delitem(sys.modules, name)
        picky = importlib.import_module("acme.picky").Picky
        registry = Registry(FilterPlugin, [picky])
        versions.append(describe_plugin(registry, "Picky").version)
    assert versions[0] == versions[2] != versions[1]


few_values = st.lists(st.sampled_from((0.0, 1.5, 50.0, 99.5, 100.0)), max_size=60)


@given(totals=few_values, count=st.integers(0, 3 * FEW))
def test_the_best_come_first_and_equal_ones_in_their_order(totals: list[float], count: int) -> None:
    by_total = sorted(range(len(totals)), key=lambda index: (-totals[index], index))
    given_totals = np.array(totals, np.float64)
    assert best(given_totals, count) == by_total[:count]
    assert given_totals.tolist() == totals, "they are left as they were"


@given(
    scores=st.lists(
        st.tuples(st.integers(1, 100), st.lists(st.floats(0, 100), min_size=3, max_size=3)),
        min_size=1,
        max_size=5,
    )
)
def test_the_mean_counts_each_score_by_its_weight(scores: list[tuple[int, list[float]]]) -> None:
    arrays = [(weight, np.array(values)) for weight, values in scores]
    copies = [values.copy() for _, values in arrays]
    total = weighted_mean(arrays)
    assert total is not None
    weights = [weight for weight, _ in scores]
    expected = np.average([values for _, values in scores], axis=0, weights=weights)
    assert total == pytest.approx(expected)
    for copy, (_, values) in zip(copies, arrays, strict=True):
        assert (values == copy).all(), "they are left as they were"


@given(values=st.lists(st.floats(0, 1e300) | st.integers(0, 100), max_size=20))
def test_compact_scores_are_the_same(values: list[float]) -> None:
    raw = np.array(values, np.float64)
    normalized = np.minimum(raw, 100)
    kept, rounded = compact(raw, normalized)
    assert kept.astype(np.float64).tolist() == raw.tolist()
    assert rounded.tolist() == normalized.astype(np.float32).tolist()
    if all(value <= 100 and value == int(value) for value in values):
        assert kept is rounded, "whole scores that nothing normalises take 4 bytes"
