"""Refuses plugin classes that would fail, or be ignored, at their first pod.

Called when a class is made: which of the hooks an author overrides, which of them one has misspelt,
which belong to another kind of plugin, and whether what the class declares can be.
"""

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from moorage.models import ObjectKind
from moorage.plugin.arguments import Arguments
from moorage.plugin.errors import refuse
from moorage.plugin.normalization import Normalization
from moorage.plugin.pod_fields import problem_of_fields
from moorage.plugin.values import MAX_TIME_BUDGET, MAX_WEIGHT, Scope
from moorage.rules import SelectorError, check_kind
from moorage.snapshot.verdicts import CURES

MethodT = TypeVar("MethodT", bound=Callable[..., object])

SHOWN_BY: Final = "shown_by"


def hook(*, shown_by: str) -> Callable[[MethodT], MethodT]:
    """Mark a method that authors override; a built-in plugin, or a page of the docs, shows it."""

    def mark(method: MethodT) -> MethodT:
        setattr(method, SHOWN_BY, shown_by)
        return method

    return mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What authors override in a kind of plugin.

    Attributes:
        methods: Whether a method is `async`, by its name.
        declarations: Class attributes.
        one_of: Of these methods a plugin overrides exactly one; the last one calls the first.
        any_of: Of these methods, and those of `one_of`, a plugin overrides at least one.
    """

    methods: Mapping[str, bool]
    declarations: tuple[str, ...]
    one_of: tuple[str, ...]
    any_of: tuple[str, ...]

    @classmethod
    def of(cls, kind: type) -> "Hooks":
        """Return the hooks that a class of `moorage.plugin.hooks` defines."""
        own = vars(kind)
        return cls(
            methods={
                name: inspect.iscoroutinefunction(value)
                for name, value in own.items()
                if hasattr(value, SHOWN_BY)
            },
            declarations=tuple(
                name for name in inspect.get_annotations(kind) if not name.startswith("_")
            ),
            one_of=own.get("_forms", ()),
            any_of=own.get("_enough", ()),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All that can be overridden."""
        return (*self.methods, *self.declarations)


HOOKS: Final[dict[str, Hooks]] = {}
"""The hooks of each class of `moorage.plugin.hooks`, which fills it."""

NOT_INHERITED: Final = ("depends_on", "reads_placements", "pod_fields", "managed_resources")
"""Declarations that a subclass has to make itself, since it may read more."""

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


_HOOKS_MODULE: Final = "moorage.plugin.hooks"


def check_definition(cls: type, *, is_abstract: bool) -> None:
    """Check a plugin class when it is made.

    Raises:
        DefinitionError: It is wrong; the message has the line and the fix.
    """
    if cls.__module__ == _HOOKS_MODULE:
        HOOKS[cls.__name__] = Hooks.of(cls)
    kinds = {base.__name__: base for base in cls.__mro__ if base.__module__ == _HOOKS_MODULE}
    own = {name: HOOKS[name] for name in kinds}
    if not own:
        return  # what these classes stand on
    _complete(cls, kinds["Plugin"])
    _check_declarations(cls, own)
    _check_args(cls)
    check_names(cls, own)
    for name, hooks in own.items():
        _check_methods(cls, kinds[name], hooks)
    if not is_abstract:
        for name, hooks in own.items():
            _check_overridden(cls, kinds[name], hooks)


def _complete(cls: type, plugin: type) -> None:
    """Give a class its name, and the defaults of what it does not inherit."""
    if "name" not in vars(cls):
        cls.name = cls.__name__  # type: ignore[attr-defined]
    for name in NOT_INHERITED:
        if name not in vars(cls):
            setattr(cls, name, vars(plugin)[name])


def _check_declarations(cls: Any, own: Mapping[str, Hooks]) -> None:
    for name in (name for hooks in own.values() for name in hooks.declarations):
        check = _PROBLEMS.get(name)
        if check is not None and (problem := check(getattr(cls, name))):
            refuse(f"{cls.__name__}.{name} {problem}", statement=rf"\s*{name}\b")
    if cls.reads and cls.depends_on is Scope.NODE:
        refuse(
            f"{cls.__name__} reads further objects, so it depends on more than Scope.NODE: declare "
            "Scope.MANIFESTS, or a wider one",
            statement=r"\s*depends_on\b",
        )
    is_bind_plugin = own.keys() <= {"Plugin", "BindPlugin"} and "BindPlugin" in own
    if cls.reads and is_bind_plugin and not cls.reads_snapshot:
        refuse(
            f"{cls.__name__} reads further objects, but not the snapshot that has them: set "
            "reads_snapshot = True",
            statement=r"\s*reads\b",
        )


def _problem_of_reads(reads: object) -> str:
    if not isinstance(reads, tuple) or not all(isinstance(kind, ObjectKind) for kind in reads):
        return f"must be a tuple of ObjectKind, not {reads!r}"
    for kind in reads:
        try:
            check_kind(kind)
        except SelectorError as error:
            return f"has {kind.plural} with what is no selector: {error}"
    return ""


def _problem_of_resources(managed: object) -> str:
    if isinstance(managed, tuple) and all(isinstance(each, str) and each for each in managed):
        return ""
    return f"must be a tuple of names such as example.com/gpu, not {managed!r}"


def _problem_of_budget(budget: Any) -> str:
    is_number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if is_number and 0 < budget <= MAX_TIME_BUDGET:
        return ""
    return f"must be seconds above 0, at most {MAX_TIME_BUDGET:g}, not {budget!r}"


def _problem_of_weight(weight: object) -> str:
    if type(weight) is int and 1 <= weight <= MAX_WEIGHT:
        return ""
    return f"must be an int from 1 to {MAX_WEIGHT}, not {weight!r}"


def _must_be(kind: type, named: str) -> Callable[[object], str]:
    return lambda value: "" if isinstance(value, kind) else f"must be {named}, not {value!r}"


def _problem_of_cure(cured_by: object) -> str:
    return "" if cured_by in CURES else f"is one of {CURES}, not {cured_by!r}"


_PROBLEMS: Final[Mapping[str, Callable[[Any], str]]] = {
    "reads": _problem_of_reads,
    "depends_on": _must_be(Scope, "a Scope"),
    "reads_placements": _must_be(bool, "True or False"),
    "managed_resources": _problem_of_resources,
    "cured_by": _problem_of_cure,
    "time_budget": _problem_of_budget,
    "pod_fields": problem_of_fields,
    "normalization": _must_be(Normalization, "a Normalization"),
    "weight": _problem_of_weight,
}
"""What is wrong with a declaration, by its name; "" if nothing is."""


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
    place = "permit" if "permit" in hooks.methods else "prepare"
    for name, is_coroutine in hooks.methods.items():
        method = _method(cls, name)
        if is_coroutine and not inspect.iscoroutinefunction(method):
            refuse(f"{cls.__name__}.{name} must be async def: write `async def {name}`", method)
        if not is_coroutine and (
            inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
        ):
            refuse(
                f"{cls.__name__}.{name} must not be async: write `def {name}`, and await in "
                f"`{place}` or in background work",
                method,
            )
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
