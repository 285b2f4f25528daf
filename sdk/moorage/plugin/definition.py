"""Refuses plugin classes that would fail, or be ignored, at their first pod."""

import difflib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from moorage.plugin.arguments import Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What authors override in a kind of plugin.

    Attributes:
        sync: Methods that are not `async`.
        coroutines: Methods that are `async`.
        declarations: Class attributes.
        one_of: Of these methods a plugin overrides exactly one; the last one calls the first.
        any_of: Of these methods a plugin overrides at least one.
    """

    sync: tuple[str, ...] = ()
    coroutines: tuple[str, ...] = ()
    declarations: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All that can be overridden."""
        return self.sync + self.coroutines + self.declarations


HOOKS: Final[Mapping[str, Hooks]] = {
    "Plugin": Hooks(
        coroutines=("start", "stop", "prepare"),
        declarations=("name", "reads", "depends_on", "pod_fields", "managed_resources", "Args"),
    ),
    "FilterPlugin": Hooks(
        sync=("filter_node", "filter", "wants_claim"), one_of=("filter_node", "filter")
    ),
    "ScorePlugin": Hooks(
        sync=("score_node", "score", "normalize"),
        declarations=("normalization", "weight"),
        one_of=("score_node", "score"),
    ),
    "BindPlugin": Hooks(
        coroutines=("pre_bind", "post_bind"),
        declarations=("reads_pod",),
        any_of=("pre_bind", "post_bind"),
    ),
}
"""What authors override, by the class of this package that has it."""

OTHER_NAMES: Final = {
    "prefilter": "prepare",
    "prescore": "prepare",
    "reserve": "wants_claim",
    "normalizescore": "normalize",
    "arguments": "Args",
}
"""What kube-scheduler calls some hooks, or an author might."""

LIKENESS: Final = 0.9
"""How much of a name must be that of a hook to be taken for a misspelling, as by `difflib`."""


def check_definition(cls: type, *, is_abstract: bool) -> None:
    """Check a plugin class when it is made.

    Raises:
        TypeError: It is wrong; the message has the line and the fix.
    """
    kinds = {base.__name__: base for base in cls.__mro__ if base.__module__.startswith(__package__)}
    own = {name: hooks for name, hooks in HOOKS.items() if name in kinds}
    _check_args(cls)
    for name, value in cls.__dict__.items():
        if not name.startswith("_") and not any(hasattr(base, name) for base in cls.__mro__[1:]):
            _check_name(cls, name, value, own)
    for hooks in own.values():
        _check_async(cls, hooks)
    if not is_abstract:
        for kind, hooks in own.items():
            _check_overridden(cls, kinds[kind], hooks)


def refuse(problem: str, method: object = None) -> NoReturn:
    """Refuse a class, with the line of the method or of the class statement."""
    code = getattr(inspect.unwrap(method), "__code__", None) if callable(method) else None
    place = f"{code.co_filename}:{code.co_firstlineno}" if code else _place_of_class()
    raise TypeError(f"{problem} ({place})")


def _place_of_class() -> str:
    """Return the line of the class statement that is being run."""
    frame = sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(f"{__package__}."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _check_args(cls: type) -> None:
    kind = getattr(cls, "Args", Arguments)
    if not (isinstance(kind, type) and issubclass(kind, Arguments)):
        refuse(f"{cls.__name__}.Args must subclass Arguments: write `class Args(Arguments):`")
    if "args" in cls.__dict__ and cls.__name__ not in HOOKS:
        refuse(f"{cls.__name__}.args comes from the policy: describe it in the class Args instead")
    annotated = inspect.get_annotations(cls).get("args", kind)
    name = annotated.rpartition(".")[2] if isinstance(annotated, str) else None
    if annotated is not kind and name != kind.__name__:
        shown = annotated if name else getattr(annotated, "__qualname__", annotated)
        refuse(
            f"{cls.__name__}.args is annotated as {shown}, but is an instance of the class Args: "
            "remove the annotation"
        )


def _check_name(cls: type, name: str, value: object, own: Mapping[str, Hooks]) -> None:
    """Refuse what looks like a hook and is none of this class."""
    hooks = {_squashed(hook): hook for each in own.values() for hook in each.names}
    if name in hooks.values():
        return
    elsewhere = [kind for kind, each in HOOKS.items() if name in each.names]
    if elsewhere and len(own) > 1:
        refuse(f"{cls.__name__}.{name} is not called: {cls.__name__} is no {elsewhere[0]}", value)
    near = difflib.get_close_matches(_squashed(name), hooks, n=1, cutoff=LIKENESS)
    meant = hooks[near[0]] if near else OTHER_NAMES.get(_squashed(name), "")
    if meant in hooks.values():
        refuse(
            f"{cls.__name__}.{name} is not called by Moorage, did you mean `{meant}`? If it is "
            f"your own, call it `_{name}`",
            value,
        )


def _squashed(name: str) -> str:
    return name.lower().replace("_", "").replace("normalis", "normaliz")


def _check_async(cls: type, hooks: Hooks) -> None:
    for name in hooks.sync:
        method = _method(cls, name)
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            refuse(
                f"{cls.__name__}.{name} must not be async: write `def {name}`, and await in "
                "`prepare` or in a task that `start` makes",
                method,
            )
    for name in hooks.coroutines:
        method = _method(cls, name)
        if not inspect.iscoroutinefunction(method):
            refuse(f"{cls.__name__}.{name} must be async: write `async def {name}`", method)


def _method(cls: type, name: str) -> Callable[..., object]:
    method = getattr(cls, name)
    if not callable(method):
        refuse(f"{cls.__name__}.{name} must be a method, not {method!r}")
    unwrapped: Callable[..., object] = inspect.unwrap(method)
    return unwrapped


def _check_overridden(cls: type, kind: type, hooks: Hooks) -> None:
    wanted = hooks.one_of or hooks.any_of
    present = [name for name in wanted if getattr(cls, name) is not getattr(kind, name)]
    if wanted and not present:
        refuse(
            f"{cls.__name__} is a {kind.__name__} without {' or '.join(wanted)}: override one of "
            f"them, or write `class {cls.__name__}(..., abstract=True)` if only subclasses do"
        )
    if hooks.one_of and len(present) > 1:
        unused, called = present
        refuse(
            f"{cls.__name__} overrides {called}, so {unused} would not be called: remove one of "
            "them",
            getattr(cls, unused),
        )
