"""What the author of a wrong plugin reads: the place, what is wrong, and what to write."""

from pathlib import Path
from typing import Any

import pytest

from moorage import BindPlugin, FilterPlugin, PluginFailedError, PluginLoadError, ScorePlugin
from moorage.plugin.hooks import Plugin
from moorage.testing import make_node, make_pod, run_filter, run_score
from moorage_host.plugins.registry import Registry

REFUSED = """
class Untyped(FilterPlugin):
    class Args(Arguments):
        zone: str = "a"
        limit = 3
    def filter_node(self, pod, node): ...
-> plugin.py:6: Untyped.Args.limit needs a type, such as `limit: int = 3`

class OtherName(FilterPlugin):
    class Params(Arguments):
        limit: int = 3
    def filter_node(self, pod, node): ...
-> plugin.py:4: OtherName.Params is not used: arguments are those of `class Args`

class SyncPrepare(FilterPlugin):
    def prepare(self, pod, nodes): ...
    def filter_node(self, pod, node): ...
-> plugin.py:4: SyncPrepare.prepare must be async def: write `async def prepare`

class AsyncFilter(FilterPlugin):
    async def filter_node(self, pod, node): ...
-> plugin.py:4: AsyncFilter.filter_node must not be async: write `def filter_node`, and await in
   `prepare` or in background work

class AsyncPermitKey(BindPlugin):
    async def permit_key(self, binding): ...
    async def permit(self, binding): ...
-> plugin.py:4: AsyncPermitKey.permit_key must not be async: write `def permit_key`, and await in
   `permit` or in background work

class Few(FilterPlugin):
    def filter_node(self, node): ...
-> plugin.py:4: Few.filter_node must take (self, pod, node), not (self, node)

class Many(ScorePlugin):
    async def prepare(self, pod, nodes, state): ...
    def score_node(self, pod, node): ...
-> plugin.py:4: Many.prepare must take (self, pod, nodes), not (self, pod, nodes, state)

class NoSelf(FilterPlugin):
    @staticmethod
    def filter_node(self, pod, node): ...
-> plugin.py:4: NoSelf.filter_node must take (pod, node), not (self, pod, node)

class Vague(ScorePlugin):
    def score_the_node(self, pod, node): ...
-> plugin.py:3: Vague is a ScorePlugin without score_node or score; it has score_the_node, did
   you mean score_node?

class Budget(FilterPlugin):
    time_budget = "2s"
    def filter_node(self, pod, node): ...
-> plugin.py:4: Budget.time_budget must be seconds above 0, at most 60, not '2s'

class NoBase:
    def filter_node(self, pod, node): ...
-> plugin.py:3: NoBase is no plugin: write `class NoBase(FilterPlugin):`
"""

FAILING = """
class ExcFilter(FilterPlugin):
    def filter_node(self, pod, node):
        return node.labels["zone"] == "y" or None
-> KeyError: 'zone' for node b (plugin.py:5)

class RetText(FilterPlugin):
    def filter_node(self, pod, node):
        return "no" if node.name == "b" else None
-> filter_node must return Rejection or None, not str for node b (plugin.py:4)

class RetNan(ScorePlugin):
    def score_node(self, pod, node):
        return float("nan") if node.name == "b" else 1.0
-> score_node returned nan for node b, which is not finite (plugin.py:4)

class TooMuch(ScorePlugin):
    def score_node(self, pod, node):
        return 120 if node.name == "b" else 1.0
-> score_node returned 120 for node b, which is outside 0..100; set normalization or override
   normalize (plugin.py:4)

class Loop(FilterPlugin):
    time_budget = 0.05
    def filter_node(self, pod, node):
        while node.name == "b": pass
-> it took longer than its time budget of 0.05 s for node b (plugin.py:6)

class Writes(FilterPlugin):
    def filter_node(self, pod, node):
        if node.name == "b": pod.labels["seen"] = "yes"
-> TypeError: pods, nodes and objects are read-only, because all plugins share them: change a
   copy, such as dict(pod.labels) for node b (plugin.py:5)

class NotRunning(FilterPlugin):
    async def start(self):
        self.background(self.poll())
    async def poll(self): ...
    def filter_node(self, pod, node): ...
-> background work is not called, but named: self.background(self._poll)
"""


def load(folder: Path, text: str) -> Plugin:
    """Write a file, load it as services do, and return an instance of its plugin."""
    file = folder / "plugin.py"
    file.write_text(f"from moorage import *\n\n{text}\n")
    for kind in (FilterPlugin, ScorePlugin, BindPlugin):
        registry = Registry(kind)
        registry.add_path(file)
        for found in map(registry.get, registry):
            assert found is not None
            return found.kind()
    raise AssertionError("no plugin")


def cases(table: str) -> list[Any]:
    """Split a table into texts and what is said of each."""
    found = [case.partition("\n-> ") for case in table.strip().split("\n\n")]
    return [
        pytest.param(text, " ".join(said.split()), id=text.partition("(")[0])
        for text, _, said in found
    ]


@pytest.mark.parametrize(("text", "said"), cases(REFUSED))
def test_a_wrong_class_is_refused_with_place_and_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PluginLoadError) as refusal:
        load(tmp_path, text)
    assert str(refusal.value) == said


@pytest.mark.parametrize(("text", "said"), cases(FAILING))
def test_a_failure_names_the_node_and_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    plugin = load(tmp_path, text)
    nodes = make_node("a", labels={"zone": "x"}), make_node("b")
    run: Any = run_score if isinstance(plugin, ScorePlugin) else run_filter
    with pytest.raises((PluginFailedError, TypeError)) as failure:
        run(plugin, make_pod(), *nodes)
    assert str(failure.value).endswith(said)
