"""Which in-tree plugins a profile runs, in which order."""

from typing import Any

import msgspec

from moorage_host.policy.merge import Entry, EntrySet, expand, merge

DEFAULTS = EntrySet(
    (
        Entry("SchedulingGates"),
        Entry("PrioritySort"),
        Entry("NodeName"),
        Entry("NodeUnschedulable"),
        Entry("TaintToleration", 3),
        Entry("NodeAffinity", 2),
        Entry("NodePorts"),
        Entry("NodeResourcesFit", 1),
        Entry("VolumeRestrictions"),
        Entry("NodeVolumeLimits"),
        Entry("VolumeBinding"),
        Entry("VolumeZone"),
        Entry("PodTopologySpread", 2),
        Entry("InterPodAffinity", 2),
        Entry("DynamicResources", 2),
        Entry("DefaultPreemption"),
        Entry("NodeResourcesBalancedAllocation", 1),
        Entry("ImageLocality", 1),
        Entry("DefaultBinder"),
    )
)
"""kube-scheduler's default plugins in its order, with the weights of their scores."""


class Strict(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the configuration: an unknown field is an error."""


class PluginName(Strict, frozen=True):
    """A plugin in a set, with the weight of its score; 0 means 1."""

    name: str
    weight: int = 0


class PluginSet(Strict, frozen=True):
    """What one extension point adds to the defaults, and what it removes from them."""

    enabled: tuple[PluginName, ...] = ()
    disabled: tuple[PluginName, ...] = ()

    @property
    def entries(self) -> EntrySet:
        """The same as the rules for merging take it."""
        enabled = tuple(Entry(plugin.name, plugin.weight) for plugin in self.enabled)
        return EntrySet(enabled, frozenset(plugin.name for plugin in self.disabled))


class Plugins(Strict, frozen=True):
    """The extension points of a profile."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()

    def at(self, point: PluginSet) -> dict[str, int]:
        """Return the plugins of one extension point in order, with their weights."""
        everywhere = merge(DEFAULTS, self.multi_point.entries).enabled
        merged = expand(point.entries, everywhere, lambda _: True)
        return {entry.name: entry.weight or 1 for entry in merged}


class PluginArguments(Strict, frozen=True):
    """Arguments of an in-tree plugin."""

    name: str
    args: dict[str, Any] = {}
