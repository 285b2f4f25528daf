"""The hooks are all in one module, and each names what shows it."""

import inspect
from pathlib import Path

import pytest

from moorage.plugin import hooks
from moorage.plugin.definition import HOOKS, SHOWN_BY
from services.binder.plugins import BUILT_INS as BIND
from services.filter.plugins import BUILT_INS as FILTER
from services.scorer.plugins import BUILT_INS as SCORE

ROOT = Path(__file__).parents[3]
METHODS = [(kind, name) for kind, each in HOOKS.items() for name in each.methods]


def test_the_hooks_are_those_of_the_api() -> None:
    assert {kind: (*each.methods,) for kind, each in HOOKS.items()} == {
        "Plugin": ("start", "stop", "prepare"),
        "FilterPlugin": ("group", "filter_node", "filter", "wants_claim"),
        "ScorePlugin": ("score_node", "score", "normalize"),
        "BindPlugin": ("permit_key", "permit", "pre_bind", "post_bind"),
    }


@pytest.mark.parametrize(("kind", "name"), METHODS)
def test_what_shows_a_hook_overrides_it(kind: str, name: str) -> None:
    base = getattr(hooks, kind)
    shown_by = getattr(getattr(base, name), SHOWN_BY)
    if shown_by.endswith(".md"):
        assert name in (ROOT / shown_by).read_text()
        return
    plugins = [each for each in (*FILTER, *SCORE, *BIND) if each.__name__ == shown_by]
    assert any(
        issubclass(each, base)
        and inspect.getattr_static(each, name) is not inspect.getattr_static(base, name)
        for each in plugins
    )
