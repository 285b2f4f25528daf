"""What a plugin class must not be, and how its author learns that."""

import re
from pathlib import Path
from typing import Any

import pytest

from moorage import (
    Arguments,
    BindPlugin,
    FilterPlugin,
    Node,
    Nodes,
    PluginFailedError,
    PluginLoadError,
    Pod,
    Preparation,
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


def method(*_: object) -> Any:
    """Stand for any method."""


async def coroutine(*_: object) -> Any:
    """Stand for any async method."""


class Limits(Arguments):
    """How hot a node may be."""

    limit: int = 80


MISSPELT = [
    (FilterPlugin, "filternode", "filter_node"),
    (Passes, "filter_nodes", "filter_node"),
    (Passes, "pre_filter", "prepare"),
    (Passes, "reserve", "wants_claim"),
    (Passes, "prepares", "prepare"),
    (Passes, "pod_field", "pod_fields"),
    (Passes, "depend_on", "depends_on"),
    (Passes, "read", "reads"),
    (ScorePlugin, "scoreNode", "score_node"),
    (Scores, "normalise", "normalize"),
    (Scores, "normalisation", "normalization"),
    (BindPlugin, "prebind", "pre_bind"),
    (BindPlugin, "postBind", "post_bind"),
]
FORMS = {
    FilterPlugin: "filter_node or filter",
    ScorePlugin: "score_node or score",
    BindPlugin: "permit or pre_bind or post_bind",
}
NOT_ASYNC = [
    *((FilterPlugin, "filter_node"), (FilterPlugin, "filter"), (Passes, "wants_claim")),
    *((ScorePlugin, "score_node"), (ScorePlugin, "score"), (Scores, "normalize")),
]
ASYNC = [
    *((Passes, "prepare"), (Passes, "start"), (Passes, "stop")),
    *((BindPlugin, "pre_bind"), (BindPlugin, "post_bind")),
]
NOT_CALLED = [
    (Passes, "score_node", "ScorePlugin"),
    (Scores, "wants_claim", "FilterPlugin"),
    (Passes, "post_bind", "BindPlugin"),
]


@pytest.mark.parametrize(
    ("base", "members", "problem"),
    [
        *(
            (
                base,
                {},
                (
                    f"is a {base.__name__} without {forms}: override one of them, or write "
                    "`class Mine(..., abstract=True)` if only subclasses do"
                ),
            )
            for base, forms in FORMS.items()
        ),
        *(
            (
                base,
                {form: method, f"{form}_node": method},
                f"overrides {form}, so {form}_node would not be called: remove one of them",
            )
            for base, form in ((FilterPlugin, "filter"), (ScorePlugin, "score"))
        ),
        *(
            (base, {name: coroutine}, f".{name} must not be async: write `def {name}`")
            for base, name in NOT_ASYNC
        ),
        *(
            (base, {name: method}, f".{name} must be async def: write `async def {name}`")
            for base, name in ASYNC
        ),
        (FilterPlugin, {"filter_node": 5}, ".filter_node must be a method, not 5"),
        *(
            (
                base,
                {name: method},
                (
                    f"has {name}, which Moorage does not use: did you mean {meant}? If it is "
                    f"your own, call it _{name}"
                ),
            )
            for base, name, meant in MISSPELT
        ),
        *(
            (base, {name: method}, f".{name} is not called: Mine is no {kind}")
            for base, name, kind in NOT_CALLED
        ),
        *(
            (
                Passes,
                {"__annotations__": {"args": annotation}},
                (
                    f".args is annotated as {getattr(annotation, '__name__', annotation)}, but is "
                    "an instance of the class Args: remove the annotation"
                ),
            )
            for annotation in (Any, dict, "Other", Limits)
        ),
        (
            Passes,
            {"args": {"limit": 80}},
            ".args comes from the policy: describe it in `class Args`",
        ),
    ],
)
def test_a_class_that_would_not_work_is_refused_with_its_line_and_what_to_do(
    base: type, members: dict[str, Any], problem: str
) -> None:
    text = f"Mine{problem}" if problem.startswith(".") else f"Mine {problem}"
    with pytest.raises(TypeError, match=rf"^tests/\S*test_definition.py:\d+: {re.escape(text)}"):
        type("Mine", (base,), members)


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


def test_a_subclass_does_not_add_the_other_form() -> None:
    with pytest.raises(TypeError, match="so filter_node would not be called") as raised:

        class Child(Passes):
            def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
                return nodes.verdicts()

    assert "passing.py:" in str(raised.value)


def test_own_methods_have_any_other_name() -> None:
    names = ("score_of", "temperature", "reject", "cached_scores", "_scores", "nodes_of")
    assert type("Mine", (Passes,), dict.fromkeys(names, method)).__name__ == "Mine"


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
