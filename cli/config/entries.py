"""Which extender entries kube-scheduler needs for a policy; `cli.config.extender` prints them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from moorage_host.policy import KINDS, Kind, PluginInfo, ResolvedPolicy

Verb = Literal["filter", "prioritize", "preempt", "bind"]

VERBS: tuple[Verb, ...] = get_args(Verb)
"""All verbs, in the order in which kube-scheduler's configuration is written."""

CLAIMS = "Reserve"
"""The extension point of filter plugins that claim nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderEntry:
    """One entry of `extenders`.

    Attributes:
        verbs: The verbs that it has, with the plugins that need each; for binds with the reason.
        resources: Only pods that request one of these are sent; empty: all pods are.
        ignorable: Whether pods are placed without it when it fails.
    """

    verbs: Mapping[Verb, tuple[str, ...]] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    ignorable: bool = False


def plan_entries(policy: ResolvedPolicy, *, ignorable: bool = False) -> list[ExtenderEntry]:
    """Return the entries that a policy needs; none if no profile enables a plugin."""
    plugins = {kind: _enabled(policy, kind) for kind in KINDS}
    return entries_for(plugins, ignorable=ignorable)


def entries_for(
    plugins: Mapping[Kind, Sequence[PluginInfo]], *, ignorable: bool = False
) -> list[ExtenderEntry]:
    """Return the entries that the enabled plugins of each kind need.

    Binds have an entry of their own, which is not ignorable: a bind that fails must never fall back
    to kube-scheduler's own. There are two exceptions. If Moorage binds only for plugins that read
    placements, which refuse no bind, kube-scheduler may bind instead where the other verbs are
    ignorable. And kube-scheduler refuses a resource in two entries: where both would have it, and
    are equally ignorable, there is one entry.
    """
    filters, scores, binders = (plugins[kind] for kind in KINDS)
    claiming = [plugin for plugin in filters if CLAIMS in plugin.points]
    reading = [p for p in (*filters, *scores) if p.reads_placements and p not in claiming]
    cycle = ExtenderEntry(
        verbs=_verbs(filters, scores),
        resources=_resources([*filters, *scores]),
        ignorable=ignorable,
    )
    binding = ExtenderEntry(
        verbs=_bind_verb(claiming, reading, binders),
        resources=_resources([*claiming, *reading, *binders]),
        ignorable=ignorable and not (claiming or binders),
    )
    if not (cycle.verbs and binding.verbs):
        return [entry for entry in (cycle, binding) if entry.verbs]
    if not set(cycle.resources) & set(binding.resources):
        return [cycle, binding]
    if cycle.ignorable != binding.ignorable:
        return [cycle, replace(binding, resources=())]
    resources = tuple(sorted({*cycle.resources, *binding.resources}))
    return [replace(cycle, verbs={**cycle.verbs, **binding.verbs}, resources=resources)]


def _enabled(policy: ResolvedPolicy, kind: Kind) -> list[PluginInfo]:
    """Return the plugins of one kind that any profile enables, in their order."""
    profiles = policy.policies[kind].profiles
    names = dict.fromkeys(plugin.name for profile in profiles for plugin in profile.plugins)
    found = (policy.catalogue.get(kind, name) for name in names)
    return [plugin for plugin in found if plugin is not None]


def _verbs(
    filters: Sequence[PluginInfo], scores: Sequence[PluginInfo]
) -> dict[Verb, tuple[str, ...]]:
    """Return the verbs of scheduling cycles that any plugin needs, with these plugins."""
    users: dict[Verb, Sequence[PluginInfo]] = {
        "filter": filters,
        "prioritize": scores,
        "preempt": filters,
    }
    return {verb: _names(plugins) for verb, plugins in users.items() if plugins}


def _bind_verb(
    claiming: Sequence[PluginInfo], reading: Sequence[PluginInfo], binders: Sequence[PluginInfo]
) -> dict[Verb, tuple[str, ...]]:
    """Return the verb for binds, if any plugin needs it, with these plugins and the reasons."""
    reasons = [
        (claiming, "it claims nodes", "they claim nodes"),
        (reading, "it reads which pods are on nodes", "they read which pods are on nodes"),
        (binders, "it acts on binds", "they act on binds"),
    ]
    needed = tuple(
        f"{', '.join(_names(plugins))}: {one if len(plugins) == 1 else several}"
        for plugins, one, several in reasons
        if plugins
    )
    return {"bind": needed} if needed else {}


def _names(plugins: Sequence[PluginInfo]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(plugin.name for plugin in plugins))


def _resources(plugins: Iterable[PluginInfo]) -> tuple[str, ...]:
    """Return the resources that the plugins concern; empty if one of them concerns all pods."""
    declared = [plugin.managed_resources for plugin in plugins]
    return tuple(sorted(set().union(*declared))) if all(declared) else ()
