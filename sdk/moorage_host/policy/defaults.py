"""What `InTree` in multiPoint stands for, and the limits of a plugin that has none of its own.

A profile starts empty: kube-scheduler's own plugins have filtered before it asks an extender, and
its own scores are added to the extender's. `InTree` makes a profile start from these plugins.
"""

from collections.abc import Iterable
from dataclasses import replace

from moorage_host.policy.catalogue import IN_TREE, Kind
from moorage_host.policy.effective import FailurePolicy
from moorage_host.policy.merge import Entry, EntrySet, merge

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
