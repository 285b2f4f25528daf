"""What the plugins of each profile depend on, and so what may be cached for equal pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.cache.signature import Signature
from moorage.plugin.normalization import Normalization
from moorage.plugin.pod_fields import union
from moorage.plugin.scope import Scope
from moorage_host.policy import Kind, PluginInfo, ResolvedPolicy

Infos = Mapping[str, list[PluginInfo | None]]
"""The plugins of each profile; None for those of which nothing is known."""


@dataclass(frozen=True, slots=True)
class LocalScore:
    """A score plugin whose raw scores anyone can turn into 0..100, and its weight."""

    plugin: str
    weight: int
    normalization: Normalization


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDependencies:
    """What the filter and score plugins of each profile depend on.

    Attributes:
        signing: Profiles whose filters depend on the cluster at most.
        local_filters: Those whose filters depend on the node or the manifests, and claim nothing.
        local_scores: The same of score plugins, with the plugins in their order.
        comparing_filters: Profiles with filters that depend on the manifests.
        comparing_scores: The same of score plugins.
        claimants: The filter plugins of each profile that may want nodes claimed.
        filter_signatures: What the filters of each profile read of a pod.
        score_signatures: The same of its score plugins.
    """

    signing: frozenset[str] = frozenset()
    local_filters: frozenset[str] = frozenset()
    local_scores: Mapping[str, tuple[LocalScore, ...]] = field(default_factory=dict)
    comparing_filters: frozenset[str] = frozenset()
    comparing_scores: frozenset[str] = frozenset()
    claimants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    filter_signatures: Mapping[str, Signature] = field(default_factory=dict)
    score_signatures: Mapping[str, Signature] = field(default_factory=dict)


def dependencies_of(resolved: ResolvedPolicy) -> ProfileDependencies:
    """Return what the plugins of a policy depend on."""
    filters, scores = _infos(resolved, "filter"), _infos(resolved, "score")
    claimants = {
        profile: tuple(info.name for info in infos if info is not None and "Reserve" in info.points)
        for profile, infos in filters.items()
    }
    return ProfileDependencies(
        signing=frozenset(
            profile
            for profile, infos in filters.items()
            if all(info is not None and info.depends_on <= Scope.CLUSTER for info in infos)
        ),
        local_filters=frozenset(
            profile
            for profile, infos in filters.items()
            if all(info is not None and _is_local(info) for info in infos)
            and not claimants[profile]
        ),
        local_scores=_local_scores(resolved),
        comparing_filters=_comparing(filters),
        comparing_scores=_comparing(scores),
        claimants=claimants,
        filter_signatures=_signatures(filters),
        score_signatures=_signatures(scores),
    )


def _is_local(info: PluginInfo) -> bool:
    """Whether what it depends on can be told from the rows and the manifests."""
    return info.depends_on <= Scope.MANIFESTS


def _comparing(profiles: Infos) -> frozenset[str]:
    return frozenset(
        profile
        for profile, infos in profiles.items()
        if any(info is not None and info.depends_on is Scope.MANIFESTS for info in infos)
    )


def _signatures(profiles: Infos) -> Mapping[str, Signature]:
    return {
        profile: Signature(union(None if info is None else info.pod_fields for info in infos))
        for profile, infos in profiles.items()
    }


def _infos(resolved: ResolvedPolicy, kind: Kind) -> Infos:
    return {
        profile.name: [resolved.catalogue.get(kind, plugin.name) for plugin in profile.plugins]
        for profile in resolved.policies[kind].profiles
    }


def _local_scores(resolved: ResolvedPolicy) -> Mapping[str, tuple[LocalScore, ...]]:
    found: dict[str, tuple[LocalScore, ...]] = {}
    for profile in resolved.policies["score"].profiles:
        scores: list[LocalScore] = []
        for plugin in profile.plugins:
            info = resolved.catalogue.get("score", plugin.name)
            if info is not None and _is_local(info) and info.normalization is not None:
                scores.append(LocalScore(plugin.name, plugin.weight, info.normalization))
        if len(scores) == len(profile.plugins):
            found[profile.name] = tuple(scores)
    return found
