"""Which in-tree plugins a profile runs, in which order, by kube-scheduler's rules for merging."""

from collections.abc import Mapping
from typing import Any

import msgspec

DEFAULTS: Mapping[str, int] = {
    "SchedulingGates": 0,
    "PrioritySort": 0,
    "NodeUnschedulable": 0,
    "NodeName": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "DefaultPreemption": 0,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": 0,
}
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
    def weights(self) -> dict[str, int]:
        """The weights of the enabled plugins."""
        return {plugin.name: plugin.weight for plugin in self.enabled}

    def without_disabled(self, plugins: Mapping[str, int]) -> dict[str, int]:
        """Return the plugins that this set does not disable."""
        disabled = {plugin.name for plugin in self.disabled}
        if "*" in disabled:
            return {}
        return {name: weight for name, weight in plugins.items() if name not in disabled}


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
        """Return the plugins of one extension point in order, with their weights.

        First those that the point names and `multiPoint` has, then the others of `multiPoint`, then
        the others that the point names. A default plugin that is configured again keeps its place.
        """
        multi = {**self.multi_point.without_disabled(DEFAULTS), **self.multi_point.weights}
        own = point.weights
        return {
            **{name: weight for name, weight in own.items() if name in multi},
            **{n: w for n, w in point.without_disabled(multi).items() if n not in own},
            **own,
        }


class PluginArguments(Strict, frozen=True):
    """Arguments of an in-tree plugin."""

    name: str
    args: dict[str, Any] = {}
