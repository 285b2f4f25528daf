"""Finds hooks that an author has misspelt, or that belong to another kind of plugin."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

from moorage.plugin.definition.hooks import HOOKS, OTHER_NAMES, Hooks
from moorage.plugin.errors import refuse

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
