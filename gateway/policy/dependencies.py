"""What the plugins of each profile depend on, and so what may be cached for equal pods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.policy.signature import Signature
from moorage.plugin.normalization import Normalization
from moorage.plugin.pod_fields import union
from moorage.plugin.scope import Scope
from moorage_host.policy import Kind, PluginInfo, ResolvedPolicy


@dataclass(frozen=True, slots=True)
class CachedScore:
    """A score plugin whose raw scores the gateway can turn into 0..100, and its weight."""

    plugin: str
    weight: int
    normalization: Normalization


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterDependencies:
    """What the filter plugins of a profile depend on.

    Attributes:
        scope: The widest scope among them.
        signature: The fields of a pod that they read.
        claimants: The plugins that may want the pod to claim its node.
        reads_placements: Whether one of them reads which pods are on a node.
    """

    scope: Scope
    signature: Signature
    claimants: tuple[str, ...]
    reads_placements: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreDependencies:
    """What the score plugins of a profile depend on.

    Attributes:
        scope: The widest scope among them; ANYTHING if the gateway cannot normalise one's scores.
        signature: The fields of a pod that they read.
        plugins: The plugins in their order, where the gateway can normalise the scores of all.
    """

    scope: Scope
    signature: Signature
    plugins: tuple[CachedScore, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDependencies:
    """What the plugins depend on, by profile; profiles without such plugins are missing."""

    filters: Mapping[str, FilterDependencies] = field(default_factory=dict)
    scores: Mapping[str, ScoreDependencies] = field(default_factory=dict)


def dependencies_of(resolved: ResolvedPolicy) -> ProfileDependencies:
    """Return what the plugins of a policy depend on."""
    return ProfileDependencies(
        filters={
            profile: _of_filters(infos) for profile, infos in _infos(resolved, "filter").items()
        },
        scores={
            profile: _of_scores(resolved, profile, infos)
            for profile, infos in _infos(resolved, "score").items()
        },
    )


def _of_filters(infos: Sequence[PluginInfo | None]) -> FilterDependencies:
    claimants = tuple(info.name for info in infos if info is not None and "Reserve" in info.points)
    return FilterDependencies(
        scope=_widest(infos),
        signature=_signature(infos),
        claimants=claimants,
        reads_placements=any(info is None or info.reads_placements for info in infos),
    )


def _of_scores(
    resolved: ResolvedPolicy, profile: str, infos: Sequence[PluginInfo | None]
) -> ScoreDependencies:
    enabled = next(p for p in resolved.policies["score"].profiles if p.name == profile).plugins
    plugins = tuple(
        CachedScore(plugin.name, plugin.weight, info.normalization)
        for plugin, info in zip(enabled, infos, strict=True)
        if info is not None and info.normalization is not None
    )
    scope = _widest(infos) if len(plugins) == len(enabled) else Scope.ANYTHING
    return ScoreDependencies(scope=scope, signature=_signature(infos), plugins=plugins)


def _widest(infos: Sequence[PluginInfo | None]) -> Scope:
    return max(Scope.ANYTHING if info is None else info.depends_on for info in infos)


def _signature(infos: Sequence[PluginInfo | None]) -> Signature:
    return Signature(union(None if info is None else info.pod_fields for info in infos))


def _infos(resolved: ResolvedPolicy, kind: Kind) -> Mapping[str, list[PluginInfo | None]]:
    """Return the plugins of each profile that has some; None for those that are not known."""
    return {
        profile.name: [resolved.catalogue.get(kind, plugin.name) for plugin in profile.plugins]
        for profile in resolved.policies[kind].profiles
        if profile.plugins
    }
