"""What the plugins of each profile depend on.

This decides what a bind or a claim has to check again, and what holds for equal pods.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from moorage.models import Pod, encode
from moorage.plugin.normalization import MAX_SCORE, Normalization
from moorage.plugin.pod_fields import FIELDS, reader, union
from moorage.plugin.values import Scope
from moorage_host.policy import Kind, PluginInfo, ResolvedPolicy

LARGEST_RAW = np.finfo(np.float64).max / (2 * MAX_SCORE)
"""The largest raw score that can be normalised."""


class Signature:
    """Reads what makes pods equal, compiled once for a profile."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Read the fields at *paths*."""
        self._plain: list[Callable[[Pod], object]] = []
        # The parts of the items of lists, by list: containers, most of all.
        lists: dict[str, list[str]] = {}
        for path in paths:
            outer, mark, inner = ".".join(FIELDS[path]).partition(".*.")
            is_flat = mark and "*" not in inner and outer.count(".") == 1
            if is_flat:
                lists.setdefault(outer, []).append(inner)
            else:
                self._plain.append(reader(path))
        self._lists = [(attrgetter(outer), attrgetter(*inner)) for outer, inner in lists.items()]

    def of(self, pod: Pod) -> bytes:
        """Return the signature of a pod; equal pods have the same."""
        parts: list[object] = []
        for read in self._plain:
            parts.append(read(pod))  # noqa: PERF401 - in Python 3.11 a comprehension is a call
        for items, inner in self._lists:
            parts.append(list(map(inner, items(pod))))
        return encode(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualPodsRule:
    """When pods of a profile are equal for its plugins, and for how long answers about them hold.

    Attributes:
        pod_fields: The fields of a pod that they read.
        signature: Reads these.
        filter_scope: What verdicts depend on; ANYTHING if they may not be cached.
        score_scope: What raw scores depend on; ANYTHING, too, if only a plugin can normalise them.
        score_plugins: The weight and the normalisation of each score plugin, in order.
    """

    pod_fields: Sequence[str]
    signature: Signature = field(compare=False)
    filter_scope: Scope
    score_scope: Scope
    score_plugins: Mapping[str, tuple[int, Normalization]]

    def accepts(self, raw: Mapping[str, Any]) -> bool:
        """Whether a replica would accept raw scores, and what they become."""
        for plugin, scores in raw.items():
            if plugin not in self.score_plugins:
                return False
            normalization = self.score_plugins[plugin][1]
            most = MAX_SCORE if normalization is Normalization.NONE else LARGEST_RAW
            if not (scores.min(initial=0) >= 0 and scores.max(initial=0) <= most):
                return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterDependencies:
    """What the filter plugins of a profile depend on.

    Attributes:
        count: How many they are.
        scope: The widest scope among them.
        claimants: The plugins that may want the pod to claim its node.
        reads_placements: Whether one of them reads which pods are on a node.
    """

    count: int
    scope: Scope
    claimants: tuple[str, ...]
    reads_placements: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDependencies:
    """What plugins depend on, by profile.

    Attributes:
        filters: What filter plugins depend on, for profiles that have some.
        scores: The profiles that have score plugins.
        equal_pods: What holds for equal pods, for profiles in which something may be cached.
    """

    filters: Mapping[str, FilterDependencies] = field(default_factory=dict)
    scores: frozenset[str] = frozenset()
    equal_pods: Mapping[str, EqualPodsRule] = field(default_factory=dict)


def dependencies_of(resolved: ResolvedPolicy) -> ProfileDependencies:
    """Return what the plugins of a policy depend on."""
    filters, scores = _infos(resolved, "filter"), _infos(resolved, "score")
    rules = {
        profile: _rule(resolved, profile, filters, scores) for profile in {**filters, **scores}
    }
    return ProfileDependencies(
        filters={profile: _of_filters(infos) for profile, infos in filters.items()},
        scores=frozenset(scores),
        equal_pods={profile: rule for profile, rule in rules.items() if rule is not None},
    )


def _of_filters(infos: Sequence[PluginInfo | None]) -> FilterDependencies:
    claimants = tuple(info.name for info in infos if info is not None and "Reserve" in info.points)
    return FilterDependencies(
        count=len(infos),
        scope=_widest(infos),
        claimants=claimants,
        reads_placements=any(info is None or info.reads_placements for info in infos),
    )


Infos = Mapping[str, list[PluginInfo | None]]


def _rule(
    resolved: ResolvedPolicy, profile: str, filters: Infos, scores: Infos
) -> EqualPodsRule | None:
    """Return what holds for equal pods of a profile; None if nothing may be cached."""
    judging, scoring = filters.get(profile, ()), scores.get(profile, ())
    filter_scope, score_scope = _widest(judging), _widest(scoring)
    if any(info is not None and "Reserve" in info.points for info in judging):
        filter_scope = Scope.ANYTHING  # whether a pod claims its node, only the plugin knows
    enabled = next(p for p in resolved.policies["score"].profiles if p.name == profile).plugins
    plugins = {
        plugin.name: (plugin.weight, info.normalization)
        for plugin, info in zip(enabled, scoring, strict=True)
        if info is not None and info.normalization is not None
    }
    if len(plugins) < len(enabled):
        score_scope = Scope.ANYTHING
    cached = [
        *(judging if filter_scope < Scope.ANYTHING else ()),
        *(scoring if score_scope < Scope.ANYTHING else ()),
    ]
    if not cached:
        return None
    pod_fields = union(None if info is None else info.pod_fields for info in cached)
    return EqualPodsRule(
        pod_fields=pod_fields,
        signature=Signature(pod_fields),
        filter_scope=filter_scope,
        score_scope=score_scope,
        score_plugins=plugins,
    )


def _widest(infos: Sequence[PluginInfo | None]) -> Scope:
    scopes = [Scope.ANYTHING if info is None else info.depends_on for info in infos]
    return max(scopes, default=Scope.ANYTHING)


def _infos(resolved: ResolvedPolicy, kind: Kind) -> Infos:
    """Return the plugins of each profile that has some; None for those that are not known."""
    return {
        profile.name: [resolved.catalogue.get(kind, plugin.name) for plugin in profile.plugins]
        for profile in resolved.policies[kind].profiles
        if profile.plugins
    }
