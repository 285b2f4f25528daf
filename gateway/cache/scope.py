"""What the plugins of each profile promise, and so what may be remembered of equal pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.cache.signature import Signature
from moorage.plugin.normalization import Normalization
from moorage.plugin.pod_fields import union
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
class Promises:
    """What is true of all filter or score plugins of a profile.

    Attributes:
        signing: Profiles whose filters judge pods with the same signature alike.
        local_filters: Those whose verdict on a node depends on nothing else but that node, or
            also on the manifests of the others.
        local_scores: The score plugins of profiles of which the same is true, in their order.
        comparing_filters: Those of the former where it depends on manifests of others.
        comparing_scores: The same of the latter.
        claimants: The filter plugins of each profile that may want nodes claimed.
        filter_signatures: What the filters of each profile look at in a pod.
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


def promises_of(resolved: ResolvedPolicy) -> Promises:
    """Return what the plugins of a policy promise."""
    filters, scores = _infos(resolved, "filter"), _infos(resolved, "score")
    claimants = {
        profile: tuple(info.name for info in infos if info is not None and "Reserve" in info.points)
        for profile, infos in filters.items()
    }
    return Promises(
        signing=frozenset(
            profile
            for profile, infos in filters.items()
            if all(info is not None and info.signs_pods for info in infos)
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
    return info.node_local or info.compares_manifests


def _comparing(profiles: Infos) -> frozenset[str]:
    return frozenset(
        profile
        for profile, infos in profiles.items()
        if any(info is not None and info.compares_manifests for info in infos)
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
