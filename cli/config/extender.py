"""The extender entries that kube-scheduler needs for a policy, with comments on what each is for.

The plugins of the policy decide which verbs an entry has, for which pods, and who binds.
"""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from moorage_host.kube_scheduler import Verb
from moorage_host.policy import KINDS, Kind, PluginInfo, ResolvedPolicy
from moorage_host.tls.identities import service_identity

TLS_FOLDER = "/etc/moorage/tls"
"""Where kube-scheduler finds its certificate as it is deployed."""


def tls_fields(url: str) -> dict[str, object]:
    """Return the fields of an extender's entry with which kube-scheduler calls an https URL."""
    if not url.startswith("https:"):
        return {}
    files = {"caFile": "ca.crt", "certFile": "tls.crt", "keyFile": "tls.key"}
    paths = {field: f"{TLS_FOLDER}/{file}" for field, file in files.items()}
    return {
        "enableHTTPS": True,
        "tlsConfig": {"serverName": service_identity("gateway"), **paths},
    }


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


WIDTH = 116

COMMENT: Any = {
    "initial_indent": "# ",
    "subsequent_indent": "# ",
    "break_long_words": False,
    "break_on_hyphens": False,
}
"""How `textwrap` makes comments."""

IN_TREE_SUM = 1400
"""The highest sum of kube-scheduler's own scores, 0..100 each, times their default weights.

TaintToleration 3, NodeAffinity, PodTopologySpread, InterPodAffinity and DynamicResources 2 each,
NodeResourcesFit, NodeResourcesBalancedAllocation and ImageLocality 1 each.
"""

POINTS = 10
"""What kube-scheduler multiplies a score by before the weight: 100, its own best, by 10."""

LEAD = 10
"""A lead in Moorage's total, of 100, that no in-tree scores can make up for."""

TLS = """Who kube-scheduler is, and whom it believes; see docs/explanation/security.md."""

RESOURCES = """
    kube-scheduler asks only about pods that request one of these. It goes on counting them itself:
    add "ignoredByScheduler: true" to those that nodes do not have as allocatable."""

TIMEOUT = """
    For one call with reading the answer. Moorage answers in milliseconds, and gives up before
    this."""

NAMES = """
    Names instead of whole nodes: smaller, faster, and since Kubernetes 1.33 the other mode makes
    in-tree plugins see every node as empty (kubernetes/kubernetes#141781)."""


def extender_yaml(entries: list[ExtenderEntry], url: str, score_scale: int) -> str:
    """Return the field `extenders` of a KubeSchedulerConfiguration.

    Args:
        entries: As `plan_entries` returns them.
        url: Where kube-scheduler finds the gateway.
        score_scale: The highest score that the policy sends.
    """
    if not entries:
        return "# No profile enables a plugin, so no extender is needed.\nextenders: []\n"
    lines = ["extenders:"]
    for entry in entries:
        for index, (comment, fields) in enumerate(_fields(entry, url, score_scale)):
            words = " ".join(comment.split())
            text = str(yaml.safe_dump(fields, sort_keys=False, width=1 << 16))
            own = [*textwrap.wrap(words, WIDTH, **COMMENT), *text.splitlines()]
            lines += [f"{' ' if index or n else '-'} {line}" for n, line in enumerate(own)]
    return "\n".join([*lines, ""])


def _fields(
    entry: ExtenderEntry, url: str, score_scale: int
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the fields of an entry, with the comment that stands above them."""
    tls = tls_fields(url)
    yield "", {"urlPrefix": url, **{k: v for k, v in tls.items() if k != "tlsConfig"}}
    if tls:
        yield TLS, {"tlsConfig": tls["tlsConfig"]}
    for verb, plugins in entry.verbs.items():
        yield f"For {('; ' if verb == 'bind' else ', ').join(plugins)}.", {f"{verb}Verb": verb}
    if "prioritize" in entry.verbs:
        weight = extender_weight(score_scale)
        step = POINTS * weight
        comment = f"""
            kube-scheduler adds Moorage's score, 0 to {score_scale}, x weight x {POINTS} to the sum
            of its own scores: at most {score_scale * step:,} beside {IN_TREE_SUM:,}. So a lead of
            {LEAD * score_scale // 100} of {score_scale} always wins. A smaller weight gives in-tree
            scores more say; see docs/how-to/plugins/score-weight.md."""
        yield comment, {"weight": weight}
    if entry.resources:
        yield RESOURCES, {"managedResources": [{"name": name} for name in entry.resources]}
    yield TIMEOUT, {"httpTimeout": "5s"}
    yield NAMES, {"nodeCacheCapable": True}
    yield _when_down(entry), {"ignorable": entry.ignorable}


def extender_weight(score_scale: int) -> int:
    """Return the least weight with which a total that leads by LEAD beats all in-tree scores."""
    lead = POINTS * LEAD * score_scale // 100
    return IN_TREE_SUM // lead + 1


def _when_down(entry: ExtenderEntry) -> str:
    if entry.ignorable:
        return "If Moorage is down, pods are placed without its rules. false would make them wait."
    if set(entry.verbs) == {"bind"}:
        return "If Moorage is down, pods are not bound: kube-scheduler must not bind instead."
    return "If Moorage is down, pods wait. true would mean that they are placed without its rules."
