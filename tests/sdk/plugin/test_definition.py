"""What a plugin class must not be, and how its author learns that."""

import re
from pathlib import Path
from typing import Any

import pytest

from moorage import (
    Arguments,
    Binding,
    BindPlugin,
    FilterPlugin,
    Node,
    Nodes,
    PluginFailedError,
    PluginLoadError,
    Pod,
    Preparation,
    Refusal,
    Rejection,
    ScorePlugin,
    Verdicts,
)
from moorage.testing import make_node, make_pod, run_filter, run_score
from moorage_host.plugins.registry import load_registry
from tests.passing import Passes


class Scores(ScorePlugin):
    """Likes all nodes."""

    def score_node(self, pod: Pod, node: Node) -> float:
        return 1


def define(base: type, **members: Any) -> type:
    """Run a class statement."""
    return type("Mine", (base,), members)


def method(*_: object) -> Any:
    """Stand for any method."""


async def coroutine(*_: object) -> Any:
    """Stand for any async method."""


def refused(problem: str, base: type, **members: Any) -> None:
    with pytest.raises(
        TypeError, match=rf"^tests/\S*test_definition.py:\d+: {re.escape(problem)}$"
    ):
        define(base, **members)


@pytest.mark.parametrize(
    ("base", "forms"),
    [
        (FilterPlugin, "filter_node or filter"),
        (ScorePlugin, "score_node or score"),
        (BindPlugin, "permit or pre_bind or post_bind"),
    ],
)
def test_a_plugin_that_does_nothing_is_refused(base: type, forms: str) -> None:
    refused(
        f"Mine is a {base.__name__} without {forms}: override one of them, or write "
        "`class Mine(..., abstract=True)` if only subclasses do",
        base,
    )


def test_a_plugin_of_two_kinds_does_both() -> None:
    with pytest.raises(TypeError, match="is a ScorePlugin without score_node or score"):
        type("Mine", (FilterPlugin, ScorePlugin), {"filter_node": method})


def test_a_base_class_may_leave_its_methods_to_subclasses() -> None:
    class Base(FilterPlugin, abstract=True):
        def _reason(self) -> Rejection:
            return Rejection("no")

    class Child(Base):
        def filter_node(self, pod: Pod, node: Node) -> Rejection | None:
            return self._reason()

    assert run_filter(Child(), make_pod(), make_node("n")) == {"n": Rejection("no")}
    with pytest.raises(TypeError, match=r": Other is a FilterPlugin without"):

        class Other(Base):
            """Does not either."""


@pytest.mark.parametrize(
    ("base", "per_node", "batch"),
    [(FilterPlugin, "filter_node", "filter"), (ScorePlugin, "score_node", "score")],
)
def test_a_plugin_has_one_of_both_forms(base: type, per_node: str, batch: str) -> None:
    refused(
        f"Mine overrides {batch}, so {per_node} would not be called: remove one of them",
        base,
        **{per_node: method, batch: method},
    )


def test_a_subclass_does_not_add_the_other_form() -> None:
    with pytest.raises(TypeError, match="so filter_node would not be called") as raised:

        class Child(Passes):
            def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
                return nodes.verdicts()

    assert "passing.py:" in str(raised.value)


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (FilterPlugin, "filter_node"),
        (FilterPlugin, "filter"),
        (Passes, "wants_claim"),
        (ScorePlugin, "score_node"),
        (ScorePlugin, "score"),
        (Scores, "normalize"),
    ],
)
def test_what_looks_at_nodes_is_not_async(base: type, name: str) -> None:
    problem = f"Mine.{name} must not be async: write `def {name}`"
    with pytest.raises(TypeError, match=rf"^tests/\S*:\d+: {re.escape(problem)}"):
        define(base, **{name: coroutine})


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (Passes, "prepare"),
        (Passes, "start"),
        (Passes, "stop"),
        (BindPlugin, "pre_bind"),
        (BindPlugin, "post_bind"),
    ],
)
def test_what_may_wait_is_async(base: type, name: str) -> None:
    refused(f"Mine.{name} must be async def: write `async def {name}`", base, **{name: method})


def test_a_hook_is_a_method() -> None:
    with pytest.raises(
        TypeError, match=r"^tests/\S+:\d+: Mine.filter_node must be a method, not 5$"
    ):
        define(FilterPlugin, filter_node=5)


@pytest.mark.parametrize(
    ("base", "name", "meant"),
    [
        (FilterPlugin, "filternode", "filter_node"),
        (Passes, "filter_nodes", "filter_node"),
        (Passes, "pre_filter", "prepare"),
        (Passes, "reserve", "wants_claim"),
        (Passes, "prepares", "prepare"),
        (Passes, "pod_field", "pod_fields"),
        (Passes, "depend_on", "depends_on"),
        (Passes, "read", "reads"),
        (ScorePlugin, "score_nodes", "score_node"),
        (ScorePlugin, "scoreNode", "score_node"),
        (Scores, "normalise", "normalize"),
        (Scores, "normalisation", "normalization"),
        (BindPlugin, "prebind", "pre_bind"),
        (BindPlugin, "postBind", "post_bind"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_right_one(base: type, name: str, meant: str) -> None:
    refused(
        f"Mine has {name}, which Moorage does not use: did you mean {meant}? If it is your own, "
        f"call it _{name}",
        base,
        **{name: method},
    )


@pytest.mark.parametrize(
    ("base", "name", "kind"),
    [
        (Passes, "score_node", "ScorePlugin"),
        (Scores, "wants_claim", "FilterPlugin"),
        (Passes, "post_bind", "BindPlugin"),
    ],
)
def test_a_method_of_another_kind_is_refused(base: type, name: str, kind: str) -> None:
    refused(f"Mine.{name} is not called: Mine is no {kind}", base, **{name: method})


def test_own_methods_have_any_other_name() -> None:
    names = ("score_of", "temperature", "reject", "cached_scores", "_scores", "nodes_of")
    assert define(Passes, **dict.fromkeys(names, method)).__name__ == "Mine"


class Limits(Arguments):
    """How hot a node may be."""

    limit: int = 80


def test_arguments_have_the_type_of_the_nested_class() -> None:
    class Hot(Passes):
        class Args(Arguments):
            limit: int = 80

    class Shared(Passes):
        class Args(Limits):
            """The same."""

    limits: list[int] = [Hot().args.limit, Hot(Hot.Args(limit=7)).args.limit, Shared().args.limit]
    assert limits == [80, 7, 80]


def test_arguments_without_their_base_are_refused() -> None:
    problem = r"Hot\.Args must subclass moorage.Arguments: write `class Args\(Arguments\):`"
    with pytest.raises(TypeError, match=rf"^tests/\S+:\d+: {problem}$"):

        class Hot(Passes):
            class Args:
                limit: int = 80


@pytest.mark.parametrize(
    ("annotation", "shown"), [(Any, "Any"), (dict, "dict"), ("Other", "Other"), (Limits, "Limits")]
)
def test_arguments_are_not_annotated_as_something_else(annotation: object, shown: str) -> None:
    refused(
        f"Mine.args is annotated as {shown}, but is an instance of the class Args: remove the "
        "annotation",
        Passes,
        __annotations__={"args": annotation},
    )


def test_an_annotation_that_is_right_is_allowed() -> None:
    mine: Any = define(Passes, Args=Limits, __annotations__={"args": Limits})
    quoted: Any = define(Passes, Args=Limits, __annotations__={"args": "Limits"})
    assert mine().args.limit == quoted().args.limit == 80


def test_arguments_are_not_set_in_the_class() -> None:
    problem = "Mine.args comes from the policy: describe it in `class Args`"
    refused(problem, Passes, args={"limit": 80})


def test_the_line_is_that_of_the_class_statement(tmp_path: Path) -> None:
    file = tmp_path / "empty.py"
    file.write_text("import moorage\n\n\nclass Empty(moorage.FilterPlugin):\n    limit = 7\n")
    with pytest.raises(PluginLoadError, match=rf"^{file}:4: Empty is a FilterPlugin without "):
        load_registry(FilterPlugin, (), [file])


def test_a_score_plugin_that_narrows_the_nodes_fails() -> None:
    class Narrows(Scores):
        async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
            return Preparation(nodes=nodes)

    with pytest.raises(PluginFailedError, match=r"failed in prepare: .*nodes.*\(.*\.py:\d+\)$"):
        run_score(Narrows(), make_pod(), make_node("n"))


def test_what_a_filter_narrows_its_score_does_not_see() -> None:
    class Both(Passes, Scores):
        async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
            return Preparation(nodes=nodes)

    assert run_score(Both(), make_pod(), make_node("n")) == {"n": 1}


def test_bind_plugins_stay_as_they_are() -> None:
    class Tells(BindPlugin):
        async def pre_bind(self, binding: Binding) -> Refusal | None:
            return None

    assert Tells().args == BindPlugin.Args()
