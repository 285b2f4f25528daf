"""A plugin that fails shows the author the test and the plugin, and no more."""

import subprocess
import sys
from pathlib import Path

FAILING = """
from moorage import FilterPlugin
from moorage.testing import make_node, make_pod, run_filter


class Fails(FilterPlugin):
    def filter_node(self, pod, node):
        return int(pod.labels["size"])


def test_it():
    run_filter(Fails(), make_pod(), make_node("a"))
"""


def test_a_failure_shows_the_plugin_and_the_test_only(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILING)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "."]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "PluginFailedError: plugin Fails failed in filter" in result.stdout
    assert 'return int(pod.labels["size"])' in result.stdout
    assert "no running event loop" not in result.stdout
    assert "asyncio.run(" not in result.stdout
    assert "supervisor" not in result.stdout
    assert "harness.py" not in result.stdout
