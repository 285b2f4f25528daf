"""kube-scheduler's rules for merging plugin sets; pure functions over names and weights.

First `merge` puts a profile's set on top of the default set, then `expand` turns multiPoint into
the plugins of one point. A shadow is an `overlay`.

A profile starts empty: kube-scheduler's own plugins have filtered before it asks an extender, and
its own scores are added to the extender's. `InTree` in multiPoint makes it start from these.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from moorage_host.policy.catalogue import IN_TREE, Kind
from moorage_host.policy.effective import FailurePolicy

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


IN_TREE_PLUGINS = (
    Entry("NodeUnschedulable"),
    Entry("NodeName"),
    Entry("TaintToleration", 3),
    Entry("NodeAffinity", 2),
    Entry("NodePorts"),
    Entry("NodeResourcesFit"),
    Entry("NodeResourcesLeastAllocated", 1),
    Entry("NodeResourcesBalancedAllocation", 1),
    Entry("ImageLocality", 1),
)
"""kube-scheduler's default plugins that exist in Moorage, in its order and with its weights.

Those that the catalogue lacks are left out.
"""


def merge_multi_point(written: EntrySet) -> EntrySet:
    """Merge a profile's multiPoint set into the in-tree list if it enables `InTree`.

    The place of `InTree` in the list does not count, only that it is there.
    """
    start = next((entry for entry in written.enabled if entry.name == IN_TREE), None)
    if start is None:
        return merge(EntrySet(), written)
    enabled = tuple(entry for entry in written.enabled if entry is not start)
    return merge(EntrySet(in_tree_entries(start.path)), EntrySet(enabled, written.disabled))


def in_tree_entries(path: str) -> tuple[Entry, ...]:
    """Return the in-tree plugins as enabled by `InTree` at a path of the document."""
    return tuple(replace(entry, path=path) for entry in IN_TREE_PLUGINS)


def in_tree_names(enabled: Iterable[str]) -> frozenset[str]:
    """Return the names that `InTree` stands for if it is among those *enabled*."""
    names = frozenset(entry.name for entry in IN_TREE_PLUGINS)
    return names if IN_TREE in enabled else frozenset()


def default_failure_policy(kind: Kind) -> FailurePolicy:
    """A failing score plugin is neutral; a filter or a bind must not be skipped unasked."""
    return "Ignore" if kind == "score" else "Abort"
