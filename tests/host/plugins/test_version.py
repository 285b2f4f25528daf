from pathlib import Path

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
