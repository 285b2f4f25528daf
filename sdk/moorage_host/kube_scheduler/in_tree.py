"""The in-tree plugins of a profile: Moorage's own of the same names.

They run as in the filter and the scorer service. Those that kube-scheduler has and Moorage lacks do
not run: NodeVolumeLimits, VolumeBinding, VolumeZone and DynamicResources, which read volumes and
resource claims.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import numpy as np

from moorage import Nodes, Pod
from moorage.execution import EnabledPlugin, PluginScores, Supervisor, owner_of
from moorage.execution import Profile as RunningProfile
from moorage.execution.filtering import FilterRun, run_filter_plugins
from moorage.in_tree.filters import FILTERS
from moorage.in_tree.filters.node_resources_fit import NodeResourcesFit
from moorage.in_tree.scores import SCORES
from moorage.plugin.hooks import Plugin
from moorage_host.kube_scheduler import KubeSchedulerProfile
from moorage_host.plugins.ranking import run_scores
from moorage_host.policy.checks import check_arguments

FIT: Final = NodeResourcesFit.name
STRATEGIES: Final = {
    "LeastAllocated": "NodeResourcesLeastAllocated",
    "MostAllocated": "NodeResourcesMostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}
"""The built-in score plugins that are the scoring strategies of NodeResourcesFit."""

_FILTERS: Final = {kind.name: kind for kind in FILTERS}
_SCORES: Final = {kind.name: kind for kind in SCORES}


class InTreePlugins:
    """Runs a profile's in-tree plugins.

    Args:
        profile: Which plugins run, with their weights and arguments.
        ignored_resources: Resources that only an extender counts.

    Raises:
        ConfigurationError: A plugin does not take its arguments.
    """

    def __init__(self, profile: KubeSchedulerProfile, ignored_resources: frozenset[str]) -> None:
        self._profile = profile
        self._ignored = ignored_resources
        self._filters = _running(self._filter(name) for name in profile.filters)
        self._scores = _running(self._score(*entry) for entry in profile.scores.items())
        self.narrows = "NodeAffinity" in profile.filters

    async def filter(self, pod: Pod, nodes: Nodes) -> FilterRun:
        """Return which of *nodes* pass all filters, and why the others do not."""
        supervisor = Supervisor(owner=owner_of(pod))
        return await run_filter_plugins(self._filters, pod, nodes, supervisor)

    async def score(self, pod: Pod, nodes: Nodes) -> list[PluginScores]:
        """Return what each plugin that does not skip the pod gives to *nodes*."""
        run = await run_scores(self._scores, pod, nodes, Supervisor(owner=owner_of(pod)))
        return [_as_in_tree(scores) for scores in run.scores]

    def _filter(self, name: str) -> EnabledPlugin | None:
        kind = _FILTERS.get(name)
        if kind is None:
            return None
        given = dict(self._profile.arguments(name))
        if name == FIT and self._ignored:  # kube-scheduler replaces the profile's list
            given["ignoredResources"] = sorted(self._ignored)
        return _enabled(kind, given, name)

    def _score(self, name: str, weight: int) -> EnabledPlugin | None:
        given = dict(self._profile.arguments(name))
        ours = name
        if name == FIT:
            given = dict(given.get("scoringStrategy") or {})
            given |= given.pop("requestedToCapacityRatio", {})
            ours = STRATEGIES.get(given.pop("type", "LeastAllocated"), "")
        if "resources" in given:  # one without a name is a resource that no node has
            listed = ({**each, "name": each["name"] or "-"} for each in given["resources"])
            given["resources"] = list(listed)
        kind = _SCORES.get(ours)
        return _enabled(kind, given, name, weight) if kind else None


def _running(plugins: Iterable[EnabledPlugin | None]) -> RunningProfile:
    return RunningProfile(name="in-tree", plugins=tuple(filter(None, plugins)))


def _enabled(
    kind: type[Plugin], given: Mapping[str, Any], name: str, weight: int = 1
) -> EnabledPlugin:
    """Build a plugin with those of kube-scheduler's arguments that it has."""
    known = {field.encode_name for field in msgspec.structs.fields(kind.Args)}
    args = {key: value for key, value in given.items() if key in known}
    plugin = kind(check_arguments(args, kind.Args, f"pluginConfig of {name}"))
    return EnabledPlugin(plugin=plugin, weight=weight, time_budget=float("inf"))


def _as_in_tree(scores: PluginScores) -> PluginScores:
    """Return the scores of a plugin in whole numbers, under kube-scheduler's name for it."""
    name = FIT if scores.plugin in STRATEGIES.values() else scores.plugin
    whole = scores.normalized.astype(np.int64)
    return msgspec.structs.replace(scores, plugin=name, normalized=whole)


def named_nodes(pod: Pod) -> frozenset[str] | None:
    """Return the only nodes that a pod (of a DaemonSet, usually) accepts, None if it names none.

    This is PreFilter of NodeAffinity: filters run on these nodes only.
    """
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    if not required or not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        fields = [r for r in term.match_fields if r.key == "metadata.name" and r.operator == "In"]
        if not fields:
            return None
        names |= frozenset.intersection(*(frozenset(r.values) for r in fields))
    return frozenset(names)
