"""What the plugins of each profile depend on: decides what a bind or a claim has to check again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moorage.plugin.scope import Scope
from moorage_host.policy import Kind, PluginInfo, ResolvedPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterDependencies:
    """What the filter plugins of a profile depend on.

    Attributes:
        scope: The widest scope among them.
        claimants: The plugins that may want the pod to claim its node.
        reads_placements: Whether one of them reads which pods are on a node.
    """

    scope: Scope
    claimants: tuple[str, ...]
    reads_placements: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDependencies:
    """What filter plugins depend on, by profile; profiles without any are missing.

    Attributes:
        filters: By profile.
        scores: The profiles that have score plugins.
    """

    filters: Mapping[str, FilterDependencies] = field(default_factory=dict)
    scores: frozenset[str] = frozenset()


def dependencies_of(resolved: ResolvedPolicy) -> ProfileDependencies:
    """Return what the plugins of a policy depend on."""
    return ProfileDependencies(
        filters={
            profile: _of_filters(infos) for profile, infos in _infos(resolved, "filter").items()
        },
        scores=frozenset(_infos(resolved, "score")),
    )


def _of_filters(infos: Sequence[PluginInfo | None]) -> FilterDependencies:
    claimants = tuple(info.name for info in infos if info is not None and "Reserve" in info.points)
    return FilterDependencies(
        scope=max(Scope.ANYTHING if info is None else info.depends_on for info in infos),
        claimants=claimants,
        reads_placements=any(info is None or info.reads_placements for info in infos),
    )


def _infos(resolved: ResolvedPolicy, kind: Kind) -> Mapping[str, list[PluginInfo | None]]:
    """Return the plugins of each profile that has some; None for those that are not known."""
    return {
        profile.name: [resolved.catalogue.get(kind, plugin.name) for plugin in profile.plugins]
        for profile in resolved.policies[kind].profiles
        if profile.plugins
    }
