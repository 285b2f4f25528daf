"""Refuses plugin classes that would fail, or be ignored, at their first pod.

Called by `moorage.plugin.base` when a class is made: which methods authors override, which of them
one has misspelt, and which belong to another kind of plugin.
"""

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from moorage.plugin.arguments import Arguments
from moorage.plugin.errors import refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What authors override in a kind of plugin.

    Attributes:
        sync: Methods that are not `async`.
        coroutines: Methods that are `async`.
        declarations: Class attributes.
        one_of: Of these methods a plugin overrides exactly one; the last one calls the first.
        any_of: Of these methods, and those of `one_of`, a plugin overrides at least one.
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
        declarations=(
            "name",
            "reads",
            "depends_on",
            "reads_placements",
            "pod_fields",
            "managed_resources",
            "time_budget",
            "Args",
        ),
    ),
    "FilterPlugin": Hooks(
        sync=("filter_node", "filter", "wants_claim", "group"),
        one_of=("filter_node", "filter"),
        any_of=("group",),
    ),
    "ScorePlugin": Hooks(
        sync=("score_node", "score", "normalize"),
        declarations=("normalization", "weight"),
        one_of=("score_node", "score"),
    ),
    "BindPlugin": Hooks(
        sync=("permit_key",),
        coroutines=("permit", "pre_bind", "post_bind"),
        declarations=("reads_pod", "reads_snapshot"),
        any_of=("permit", "pre_bind", "post_bind"),
    ),
}

OTHER_NAMES: Final[Mapping[str, str]] = {
    "prefilter": "prepare",
    "prescore": "prepare",
    "reserve": "wants_claim",
    "normalizescore": "normalize",
    "arguments": "Args",
}
"""What kube-scheduler calls some hooks, or an author might."""


LIKENESS: Final = 0.88
"""How much of a name must be that of a hook to be taken for a misspelling, as by `difflib`."""

VAGUE_LIKENESS: Final = 0.6
"""The same in a class that lacks a hook which it must have."""


def check_names(cls: type, own: Mapping[str, Hooks]) -> None:
    """Refuse what looks like a hook and is none of this class.

    Raises:
        DefinitionError: The message has the name that is meant.
    """
    for name, value in cls.__dict__.items():
        if not name.startswith("_") and not any(hasattr(base, name) for base in cls.__mro__[1:]):
            _check_name(cls, name, value, own)


def similar_to(wanted: Iterable[str], cls: type) -> str:
    """Return `; it has X, did you mean Y?` if a method of the class may be meant as a hook."""
    present = {_squashed(name): name for name, v in cls.__dict__.items() if callable(v)}
    for hook in wanted:
        near = difflib.get_close_matches(_squashed(hook), present, n=1, cutoff=VAGUE_LIKENESS)
        if near:
            return f"; it has {present[near[0]]}, did you mean {hook}?"
    return ""


def _check_name(cls: type, name: str, value: object, own: Mapping[str, Hooks]) -> None:
    hooks = {_squashed(hook): hook for each in own.values() for hook in each.names}
    if name in hooks.values():
        return
    elsewhere = [kind for kind, each in HOOKS.items() if name in each.names]
    statement = rf"\s*{name}\b"
    if elsewhere and len(own) > 1:
        problem = f"{cls.__name__}.{name} is not called: {cls.__name__} is no {elsewhere[0]}"
        refuse(problem, value, statement=statement)
    near = difflib.get_close_matches(_squashed(name), hooks, n=1, cutoff=LIKENESS)
    meant = hooks[near[0]] if near else OTHER_NAMES.get(_squashed(name), "")
    if meant in hooks.values():
        refuse(
            f"{cls.__name__} has {name}, which Moorage does not use: did you mean {meant}? If it "
            f"is your own, call it _{name}",
            value,
            statement=statement,
        )


def _squashed(name: str) -> str:
    return name.lower().replace("_", "").replace("normalis", "normaliz")


_PACKAGE: Final = "moorage.plugin."


def check_definition(cls: type, *, is_abstract: bool) -> None:
    """Check a plugin class when it is made.

    Raises:
        DefinitionError: It is wrong; the message has the line and the fix.
    """
    kinds = {base.__name__: base for base in cls.__mro__ if base.__module__.startswith(_PACKAGE)}
    own = {name: hooks for name, hooks in HOOKS.items() if name in kinds}
    _check_args(cls)
    check_names(cls, own)
    for name, hooks in own.items():
        _check_methods(cls, kinds[name], hooks)
    if not is_abstract:
        for name, hooks in own.items():
            _check_overridden(cls, kinds[name], hooks)


def _check_args(cls: type) -> None:
    kind = getattr(cls, "Args", Arguments)
    if not (isinstance(kind, type) and issubclass(kind, Arguments)):
        refuse(
            f"{cls.__name__}.Args must subclass moorage.Arguments: write `class Args(Arguments):`",
            statement=r"\s*(class\s+)?Args\b",
        )
    for name, value in cls.__dict__.items():
        if "Args" not in cls.__dict__ and inspect.isclass(value) and issubclass(value, Arguments):
            problem = f"{cls.__name__}.{name} is not used: arguments are those of `class Args`"
            refuse(problem, statement=rf"\s*class\s+{name}\b")
    if "args" in cls.__dict__ and cls.__name__ not in HOOKS:
        problem = f"{cls.__name__}.args comes from the policy: describe it in `class Args`"
        refuse(problem, statement=r"\s*(class\s+|def\s+)?args\b")
    annotated = inspect.get_annotations(cls).get("args", kind)
    quoted = annotated.rpartition(".")[2] if isinstance(annotated, str) else None
    if annotated is not kind and quoted != kind.__name__:
        shown = annotated if quoted else getattr(annotated, "__qualname__", annotated)
        refuse(
            f"{cls.__name__}.args is annotated as {shown}, but is an instance of the class Args: "
            "remove the annotation",
            statement=r"\s*args\s*:",
        )


def _check_methods(cls: type, kind: type, hooks: Hooks) -> None:
    place = "permit" if "permit" in hooks.coroutines else "prepare"
    for name in hooks.sync:
        method = _method(cls, name)
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            refuse(
                f"{cls.__name__}.{name} must not be async: write `def {name}`, and await in "
                f"`{place}` or in background work",
                method,
            )
        _check_parameters(cls, kind, name)
    for name in hooks.coroutines:
        method = _method(cls, name)
        if not inspect.iscoroutinefunction(method):
            refuse(f"{cls.__name__}.{name} must be async def: write `async def {name}`", method)
        _check_parameters(cls, kind, name)


def _method(cls: type, name: str) -> Callable[..., object]:
    method = getattr(cls, name)
    if not callable(method):
        problem = f"{cls.__name__}.{name} must be a method, not {method!r}"
        refuse(problem, statement=rf"\s*{name}\b")
    unwrapped: Callable[..., object] = inspect.unwrap(method)
    return unwrapped


def _check_parameters(cls: type, kind: type, name: str) -> None:
    """Refuse a method that cannot be called as the one that it overrides."""
    method = inspect.getattr_static(cls, name)
    if method is inspect.getattr_static(kind, name):
        return
    wanted = list(_required(getattr(kind, name)))
    bound = isinstance(method, staticmethod)  # such a one is called without `self`
    function = getattr(method, "__func__", method)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # it is no Python function: the first pod will show
        return
    try:
        signature.bind(*wanted[bound:])
    except TypeError:
        shown = ", ".join(signature.parameters)
        expected = ", ".join(wanted[bound:])
        refuse(f"{cls.__name__}.{name} must take ({expected}), not ({shown})", function)


def _required(function: Callable[..., object]) -> Iterator[str]:
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is parameter.empty:
            yield name


def _check_overridden(cls: type, kind: type, hooks: Hooks) -> None:
    wanted = hooks.one_of or hooks.any_of
    present = [name for name in wanted if getattr(cls, name) is not getattr(kind, name)]
    others = [name for name in hooks.any_of if getattr(cls, name) is not getattr(kind, name)]
    if wanted and not present and not others:
        advice = similar_to(wanted, cls) or (
            ": override one of them, or write "
            f"`class {cls.__name__}(..., abstract=True)` if only subclasses do"
        )
        refuse(f"{cls.__name__} is a {kind.__name__} without {' or '.join(wanted)}{advice}")
    if hooks.one_of and len(present) > 1:
        unused, called = present
        refuse(
            f"{cls.__name__} overrides {called}, so {unused} would not be called: remove one of "
            "them",
            getattr(cls, unused),
        )
