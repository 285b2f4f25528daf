"""Plugins in the documentation work, and their tests pass."""

import asyncio
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from moorage import FilterPlugin, ObjectKind, Rejection, ScorePlugin
from moorage.plugin.hooks import Plugin
from moorage.rules import check_kind
from moorage.testing import (
    make_node,
    make_pod,
    record_retries,
    run_filter,
    run_score,
    running,
    time_is,
)
from moorage_host.plugins.registry import GROUPS, Registry
from tools.docs.pages import DOCS, Block, blocks
from tools.waiting import until

BLOCKS = list(blocks("python"))


def name_of(block: Block) -> str:
    return block.text.partition("\n")[0].removeprefix("# ")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All Python of the documentation, as the files that it is said to be."""
    for block in BLOCKS:
        (tmp_path / name_of(block)).write_text(block.text)
    return tmp_path


@pytest.fixture
def importable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(folder)
    known = set(sys.modules)
    yield folder
    for name in set(sys.modules) - known:
        del sys.modules[name]


def plugin(file: Path, kind: type[Plugin], name: str) -> type[Any]:
    registry = Registry(kind)
    registry.add_path(file)
    found = registry.get(name)
    assert found is not None
    return found.kind


def test_every_block_names_its_file() -> None:
    assert BLOCKS
    assert all(name_of(block).endswith(".py") for block in BLOCKS)


def test_blocks_of_the_same_file_are_alike() -> None:
    texts = {(name_of(block), block.text) for block in BLOCKS}
    assert len(texts) == len({name for name, _ in texts})


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_plugin_file_is_found_as_one(block: Block, folder: Path) -> None:
    if name_of(block).startswith("test_"):
        return
    registries = [Registry(kind) for kind in GROUPS]
    for registry in registries:
        registry.add_path(folder / name_of(block))
    found = {registry.get(name) for registry in registries for name in registry}
    assert len(found) == 1, "one class, of one kind or of several"


@pytest.mark.parametrize("block", [b for b in BLOCKS if name_of(b).startswith("test_")], ids=str)
def test_the_tests_of_a_plugin_pass(
    block: Block, importable: Path, request: pytest.FixtureRequest
) -> None:
    module = _module(importable / name_of(block))
    tests = [value for name, value in vars(module).items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test(**{name: request.getfixturevalue(name) for name in inspect.signature(test).parameters})


def test_fast_disks_rejects_slow_nodes_for_pods_that_want_fast_ones(folder: Path) -> None:
    fast_disks = plugin(folder / "fast_disks.py", FilterPlugin, "FastDisks")
    nodes = (make_node("fast", labels={"example.com/disk": "nvme"}), make_node("slow"))
    wants = make_pod(annotations={"example.com/fast-disks": "true"})
    assert run_filter(fast_disks(), wants, *nodes) == {
        "fast": None,
        "slow": Rejection("node has no fast disk"),
    }
    assert set(run_filter(fast_disks(), make_pod(), *nodes).values()) == {None}


def test_max_temperature_rejects_nodes_whose_temperature_is_not_a_number(folder: Path) -> None:
    max_temperature = plugin(folder / "max_temperature.py", FilterPlugin, "MaxTemperature")
    node = make_node("n", annotations={"example.com/temperature": "nan"})
    found = run_filter(max_temperature(), make_pod(), node)
    assert found == {"n": Rejection("node is too hot")}


def test_spread_apps_does_not_spread_pods_without_an_app(folder: Path) -> None:
    spread_apps = plugin(folder / "spread_apps.py", ScorePlugin, "SpreadApps")
    nodes = (make_node("full"), make_node("empty"))
    running = [make_pod("other", node="full")]
    assert run_score(spread_apps(), make_pod(), *nodes, pods=running) == {"full": 100, "empty": 100}


def test_one_per_zone_keeps_pods_of_an_app_in_different_zones(folder: Path) -> None:
    one_per_zone = plugin(folder / "one_per_zone.py", FilterPlugin, "OnePerZone")
    zone = "topology.kubernetes.io/zone"
    nodes = [make_node(f"n{i}", labels={zone: value}) for i, value in enumerate("aab")]
    web = make_pod("web-1", labels={"app": "web"}, node="n0")
    occupied = Rejection("zone has a pod of the app", unresolvable=False)
    pod = make_pod("web-2", labels={"app": "web"})
    assert run_filter(one_per_zone(), pod, *nodes, pods=[web]) == {
        "n0": occupied,
        "n1": occupied,
        "n2": None,
    }
    assert set(run_filter(one_per_zone(), make_pod(), *nodes, pods=[web]).values()) == {None}


def test_low_carbon_reads_its_file_in_the_background_and_skips_pods_without_it(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    low_carbon = plugin(folder / "low_carbon.py", ScorePlugin, "LowCarbon")
    file = folder / "grams.json"
    file.write_text(json.dumps({"hydro": 20, "coal": 800}))
    plugin_ = low_carbon(low_carbon.Args(file=str(file)))
    zone = "topology.kubernetes.io/zone"
    nodes = [make_node(name, labels={zone: name}) for name in ("hydro", "coal", "unknown")]
    assert run_score(plugin_, make_pod(), *nodes) == {"hydro": 97.5, "coal": 0, "unknown": 0}
    file.write_text('{"hydro": ')  # half-written
    assert run_score(plugin_, make_pod(), *nodes) == {}
    assert "JSONDecodeError" in caplog.text


async def test_frozen_teams_asks_a_server_and_remembers_over_a_reload(folder: Path) -> None:
    frozen_teams = plugin(folder / "frozen_teams.py", FilterPlugin, "FrozenTeams")
    pod, node = make_pod(labels={"example.com/team": "a"}), make_node("n")
    file, frozen = folder / "frozen.json", Rejection("the team is frozen")

    def instance(url: str) -> Any:
        return frozen_teams(frozen_teams.Args(url=url, file=str(file)))

    async def heard(teams: list[str], at: str) -> list[str]:
        """Run an instance until it has kept an answer; return why it had pods tried again."""
        app = web.Application()
        app.router.add_get("/", answering(teams))
        async with TestServer(app) as server:
            plugin_ = instance(str(server.make_url("/")))
            retries = record_retries(plugin_)
            with time_is(at):
                async with running(plugin_):
                    await until(lambda: file.exists() and [*json.loads(file.read_text())] == teams)
        return retries

    async def found(at: str) -> Rejection | None:
        with time_is(at):  # of an instance that reaches no server
            verdicts = await asyncio.to_thread(
                run_filter, instance("http://127.0.0.1:1/"), pod, node
            )
        return verdicts["n"]

    assert await heard(["a"], "2026-11-29T10:00:00Z") == []
    assert await found("2026-11-29T10:00:59Z") == frozen
    assert await found("2026-11-29T10:01:01Z") is None
    assert await heard([], "2026-11-29T10:01:01Z") == ["a team has thawed"]


def answering(content: object) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(content)

    return answer


def test_newest_kernels_prefers_new_kernels_and_notes_old_ones(folder: Path) -> None:
    newest = plugin(folder / "newest_kernels.py", ScorePlugin, "NewestKernels")()
    kernels = {"new": "6.12.3", "old": "4.19", "odd": "6", "none": None}
    nodes = [
        make_node(n, labels={"example.com/kernel": k} if k else {}) for n, k in kernels.items()
    ]
    assert run_score(newest, make_pod(), *nodes) == {"new": 100, "old": 66, "odd": 99, "none": 0}
    assert newest.latest_note == "2 nodes have a kernel older than 5.0, such as old"


def test_every_example_of_what_to_read_is_a_kind_of_its_own() -> None:
    page = (DOCS / "how-to" / "plugins" / "more.md").read_text()
    written = re.findall(r"^\| `(ObjectKind\(.*\))` \|", page, re.MULTILINE)
    kinds = [eval(text, {"ObjectKind": ObjectKind}) for text in written]  # our own page
    assert len(kinds) == len(set(kinds)) == 5
    for kind in kinds:
        check_kind(kind)


def test_a_plugin_and_its_test_take_thirty_lines() -> None:
    lengths = {name_of(block): sum(map(bool, block.text.splitlines())) for block in BLOCKS}
    assert lengths["max_temperature.py"] + lengths["test_max_temperature.py"] <= 30


def test_the_readme_and_the_guide_show_the_same_first_plugin() -> None:
    shown = {b.page.name for b in BLOCKS if name_of(b) == "max_temperature.py"}
    assert shown == {"README.md", "write.md"}


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
