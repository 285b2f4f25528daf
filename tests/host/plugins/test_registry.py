"""Plugins are found, loaded and followed."""

import asyncio
import sys
from pathlib import Path

import pytest

from moorage import FilterPlugin, PluginLoadError, ScorePlugin
from moorage_host.plugins.host import RetryRequests
from moorage_host.plugins.registry import Registry, load_registry
from tests.passing import Passes

PLUGIN = """
from moorage import FilterPlugin as Base, ScorePlugin

class {name}(Base):
    "Rules nothing out."

    def filter_node(self, pod, node):
        return None
"""


class Known(Passes):
    """A plugin that comes with a service."""


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def load(*paths: Path) -> Registry:
    return load_registry(FilterPlugin, (Known,), paths)


def test_files_and_folders_add_the_plugins_that_their_files_define(tmp_path: Path) -> None:
    for name in ("B", "A"):
        write(tmp_path / f"{name.lower()}.py", PLUGIN.format(name=name))
    write(tmp_path / "_helper.py", PLUGIN.format(name="Helper"))
    for name in ("test_a.py", "a_test.py", "conftest.py"):  # new-plugin writes tests beside plugins
        write(tmp_path / name, "from a import A\n")
    same_name = write(tmp_path / "deep" / "a.py", PLUGIN.format(name="C"))
    write(tmp_path / "notes.txt", "not Python")
    registry = load(tmp_path, tmp_path / "a.py", same_name)
    assert {name: found.origin for name in registry if (found := registry.get(name))} == {
        "A": str(tmp_path / "a.py"),
        "B": str(tmp_path / "b.py"),
        "C": str(same_name),
        "Known": "built-in",
    }
    assert list(load_registry(ScorePlugin, (), [tmp_path])) == []


def test_files_of_a_mounted_config_map_are_followed_once(tmp_path: Path) -> None:
    real = write(tmp_path / "..2026_11_21" / "mine.py", PLUGIN.format(name="Mine"))
    (tmp_path / "..data").symlink_to(real.parent.name)
    (tmp_path / "mine.py").symlink_to("..data/mine.py")
    assert list(load(tmp_path)) == ["Known", "Mine"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("x = 1\n", "mine.py defines no plugin: subclass", id="no plugin"),
        pytest.param("import nowhere_at_all\n", "mine.py:1: ModuleNotFoundError", id="import"),
        pytest.param("x = 1\ny = x / 0\n", "mine.py:2: ZeroDivisionError", id="exception"),
        pytest.param("import sys\n\nsys.exit(3)\n", "mine.py:3: SystemExit: 3", id="exit"),
        pytest.param("import os\nos._exit(3)\n", "mine.py:2: SystemExit: os._exit(3)", id="leave"),
        pytest.param("x = 1\nif x\n    y\n", "mine.py:2: SyntaxError: expected ':'", id="syntax"),
        pytest.param(
            "if True:\nx = 1\n", "mine.py:2: IndentationError: expected an indented", id="indent"
        ),
        pytest.param(PLUGIN.format(name="Known"), "two plugins are called Known: one", id="taken"),
        pytest.param(PLUGIN.format(name="InTree"), "mine.py cannot have this name", id="reserved"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported_with_its_line(
    tmp_path: Path, content: str, message: str
) -> None:
    file = write(tmp_path / "mine.py", content)
    with pytest.raises(PluginLoadError) as refusal:
        load(file)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    "content",
    [
        "x = 1\nwhile True:\n    pass\n",
        "import time\nwhile True:\n    try: time.sleep(60)\n    except Exception: pass\n",
    ],
)
def test_a_file_that_never_ends_is_given_up_and_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setattr("moorage_host.plugins.registry.LOAD_SECONDS", 0.2)
    file = write(tmp_path / "mine.py", content)
    with pytest.raises(PluginLoadError, match=r"mine\.py:[23]: it is not loaded after 0\.2 s"):
        load(file)


def test_a_file_that_failed_can_be_corrected_and_loaded(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.py", "1 / 0\n")
    with pytest.raises(PluginLoadError):
        load(file)
    write(file, PLUGIN.format(name="Mine"))
    assert list(load(file)) == ["Known", "Mine"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("missing.py", "missing.py does not exist"),
        ("missing", "missing does not exist"),
        ("mine.txt", r"its name must end in \.py"),
    ],
)
def test_a_path_that_is_no_python_is_refused(tmp_path: Path, path: str, problem: str) -> None:
    write(tmp_path / "mine.txt", PLUGIN.format(name="Mine"))
    with pytest.raises(PluginLoadError, match=problem):
        load(tmp_path / path)


def install(folder: Path, module: str, content: str, entry: str) -> None:
    """Do what pip does: a module, and metadata that announce its entry point."""
    write(folder / f"{module}.py", content)
    info = folder / f"{module}-1.2.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.2\n")
    write(info / "entry_points.txt", f"[moorage.filter]\n{entry}\n")


def test_installed_packages_announce_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "acme_one", PLUGIN.format(name="Acme"), "Acme = acme_one:Acme")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme_one", raising=False)
    registry = load()
    acme = registry.get("Acme")
    assert acme is not None
    assert acme.origin == "acme_one 1.2"
    assert list(load_registry(ScorePlugin, (), ())) == []


@pytest.mark.parametrize(
    ("content", "entry", "message"),
    [
        ("1 / 0", "Acme = {}:Acme", "cannot load plugin Acme of {} 1.2: ZeroDivisionError"),
        ("", "Acme = {}:Acme", "cannot load plugin Acme of {} 1.2: AttributeError"),
        ("Acme = 5", "Acme = {}:Acme", "plugin Acme of {} 1.2 is not a FilterPlugin: {}:Acme"),
        (PLUGIN.format(name="Known"), "Known = {}:Known", "two plugins are called Known"),
    ],
)
def test_an_installed_package_whose_plugin_cannot_be_used_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    content: str,
    entry: str,
    message: str,
) -> None:
    module = f"acme_{abs(hash(request.node.name))}"
    install(tmp_path, module, content, entry.format(module))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginLoadError) as refusal:
        load()
    assert message.format(module, module) in str(refusal.value)


async def collect(requests: RetryRequests, into: list[tuple[str, str, str]]) -> None:
    into.extend([request async for request in requests.follow()])


async def test_all_that_follow_get_each_plugin_and_namespace_once_with_its_newest_reason() -> None:
    requests = RetryRequests()
    first, second = list[tuple[str, str, str]](), list[tuple[str, str, str]]()
    requests.ask("Early", "nobody follows yet", "")
    async with asyncio.TaskGroup() as group:
        for into in (first, second):
            group.create_task(collect(requests, into))
        await asyncio.sleep(0)
        requests.ask("Prices", "old", "")
        requests.ask("Prices", "new", "")
        requests.ask("Prices", "of a team", "team")
        await asyncio.to_thread(requests.ask, "License", "", "")
        requests.end()
    assert first == second
    assert set(first) == {
        ("Prices", "new", ""),
        ("Prices", "of a team", "team"),
        ("License", "", ""),
    }
