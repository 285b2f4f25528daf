"""kube-scheduler's rules for merging plugin sets; pure functions over names and weights.

First `merge` puts a profile's set on top of the default set, then `expand` turns multiPoint into
the plugins of one point. A shadow is an `overlay`. Called by `resolve`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

ALL = "*"


@dataclass(frozen=True, slots=True)
class Entry:
    """An enabled plugin.

    Attributes:
        name: The plugin.
        weight: As written; 0 means the default of the plugin.
        path: Where it is enabled in the document.
    """

    name: str
    weight: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class EntrySet:
    """What is enabled, in order, and which names are disabled."""

    enabled: tuple[Entry, ...] = ()
    disabled: frozenset[str] = frozenset()


def merge(default: EntrySet, custom: EntrySet) -> EntrySet:
    """Put a profile's set on top of the default set.

    Defaults keep their order unless disabled. One that the profile enables too is replaced in its
    place. What else the profile enables follows; enabling beats disabling.
    """
    replacements = {entry.name: entry for entry in custom.enabled}
    disabled = custom.disabled | default.disabled
    kept = [] if ALL in disabled else [e for e in default.enabled if e.name not in disabled]
    names = {entry.name for entry in kept}
    replaced = [replacements.get(entry.name, entry) for entry in kept]
    added = [entry for entry in custom.enabled if entry.name not in names]
    return EntrySet((*replaced, *added), disabled)


def overlay(own: EntrySet, shadow: EntrySet) -> EntrySet:
    """Put a shadow's set on top of its profile's, by the rules of `merge`.

    What the profile disables at a point stays disabled, unless the shadow enables it.
    """
    merged = merge(EntrySet(own.enabled), shadow)
    return EntrySet(merged.enabled, own.disabled | shadow.disabled)


def expand(
    point: EntrySet, multi_point: Iterable[Entry], implements: Callable[[str], bool]
) -> list[Entry]:
    """Return the plugins that run at a point, in order.

    First those that the point names and multiPoint has as well, then the rest of multiPoint that
    implements the point, then the rest that the point names. An entry at the point beats
    multiPoint's. What the point disables is not taken from multiPoint; `*` stands for all of it.
    """
    if ALL in point.disabled:
        return list(point.enabled)
    named = {entry.name for entry in point.enabled}
    offered = [e for e in multi_point if e.name not in point.disabled and implements(e.name)]
    overriding = {entry.name for entry in offered} & named
    return [
        *(entry for entry in point.enabled if entry.name in overriding),
        *(entry for entry in offered if entry.name not in named),
        *(entry for entry in point.enabled if entry.name not in overriding),
    ]
