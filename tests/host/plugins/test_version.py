import importlib
import sys
from pathlib import Path

import pytest

from moorage import FilterPlugin
from moorage_host.plugins.registry import Registry, load_registry
from moorage_host.rpc.describe import describe_plugin
from services.filter.plugins import BUILT_INS

CODE = """
from moorage import FilterPlugin

class Picky(FilterPlugin):
    '''Rejects nothing.'''

    limit = {limit}

    def filter_node(self, pod, node):
        return None
"""


def version(file: Path, limit: int) -> str:
    file.parent.mkdir()
    file.write_text(CODE.format(limit=limit))
    return describe_plugin(load_registry(FilterPlugin, (), [file]), "Picky").version


def test_the_version_is_that_of_the_code_wherever_the_file_is(tmp_path: Path) -> None:
    here, there = (version(tmp_path / name / "picky.py", 1) for name in ("a", "b"))
    assert here == there
    assert len(here) == 16
    assert version(tmp_path / "c" / "picky.py", 2) != here


def test_every_plugin_has_a_version_of_its_own() -> None:
    registry = Registry(FilterPlugin, BUILT_INS)
    versions = {describe_plugin(registry, name).version for name in registry}
    assert len(versions) == len(registry)


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
    assert helped(tmp_path / "b", helper="import deeper", deeper="limit = 1") == first
    assert helped(tmp_path / "c", helper="import deeper", deeper="limit = 2") != first
    assert helped(tmp_path / "d", helper="import deeper\nx = 1", deeper="limit = 1") != first
    others = {"helper": "import deeper", "deeper": "limit = 1", "other": "limit = 3"}
    assert helped(tmp_path / "e", **others) == first
    assert helped(tmp_path / "f", helper="import deeper") != first


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
