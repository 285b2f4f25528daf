"""The active policy: the document, resolved against the plugins that replicas announce."""

import asyncio
import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import reduce
from hashlib import sha256
from typing import Literal

import structlog
from google.protobuf.json_format import MessageToDict
from msgspec.structs import replace

from gateway.policy.dependencies import ProfileDependencies, dependencies_of
from moorage.errors import ConfigurationError
from moorage.models import ObjectKind
from moorage.plugin.pod_fields import union
from moorage.plugin.values import DEFAULT_TIME_BUDGET
from moorage.v1 import types_pb2 as pb
from moorage_host.policy import (
    DEFAULT_SCORE_SCALE,
    IN_TREE,
    Catalogue,
    ConfiguredProfile,
    Document,
    Kind,
    PluginInfo,
    ResolvedPolicy,
    Shadow,
    encode_effective,
    resolve,
)
from moorage_host.rpc.convert import (
    from_duration,
    kind_from_proto,
    normalization_from_proto,
    scope_from_proto,
)

DIGITS = 16
"""Hexadecimal digits of a version; decisions show them."""

KEPT = 32
"""Digests, the newest; a roll-out brings one for filters and one for scorers."""


class PluginVersions:
    """The version of each plugin, by the digest of all plugins of a replica."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Mapping[str, str]] = OrderedDict()

    def note(self, digest: str, versions: Mapping[str, str]) -> None:
        """Keep the versions by plugin that a digest stands for."""
        self._kept[digest] = versions
        self._kept.move_to_end(digest)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def of(self, digest: str) -> Mapping[str, str]:
        """Return the versions by plugin; none if they are not kept."""
        return self._kept.get(digest, {})


def digest_of(plugins: Iterable[pb.Plugin]) -> str:
    """Return a digest of the versions of plugins: replicas with equal ones give equal answers."""
    versions = sorted(f"{plugin.name}={plugin.version}" for plugin in plugins)
    return sha256("\n".join(versions).encode()).hexdigest()[:DIGITS]


def versions_of(plugins: Iterable[pb.Plugin]) -> dict[str, str]:
    """Return the version of each plugin, by its name."""
    return {plugin.name: plugin.version[:DIGITS] for plugin in plugins}


def common_declarations(replicas: Iterable[Sequence[PluginInfo]]) -> list[PluginInfo]:
    """Return the plugins of all replicas, each with what every replica that has it declares.

    Permissions need every replica; requirements, such as objects to read, need one. A time budget
    is the longest and a weight the least, so that it does not matter who greeted last.
    """
    versions: dict[str, list[PluginInfo]] = {}
    for infos in replicas:
        for info in infos:
            versions.setdefault(info.name, []).append(info)
    return [reduce(_common, each) for each in versions.values()]


def _resources(one: PluginInfo, last: PluginInfo) -> tuple[str, ...]:
    """Return the resources of both, () where one of them concerns all pods."""
    both = one.managed_resources, last.managed_resources
    return tuple(sorted({*both[0], *both[1]})) if all(both) else ()


def _common(one: PluginInfo, last: PluginInfo) -> PluginInfo:
    alike = {
        key: last.default_args[key]
        for key in last.default_args
        if one.default_args.get(key) == last.default_args[key]
    }
    if one == last:
        return last
    return dataclasses.replace(
        last,
        points=one.points | last.points,
        args_schema=last.args_schema if one.args_schema == last.args_schema else None,
        reads=tuple(dict.fromkeys((*one.reads, *last.reads))),
        depends_on=max(one.depends_on, last.depends_on),
        pod_fields=union((one.pod_fields, last.pod_fields)),
        normalization=last.normalization if one.normalization is last.normalization else None,
        reads_snapshot=one.reads_snapshot or last.reads_snapshot,
        reads_placements=one.reads_placements or last.reads_placements,
        default_args=alike,
        weight=min(one.weight, last.weight),
        time_budget=max(one.time_budget, last.time_budget),
        origin=max(one.origin, last.origin),
        managed_resources=_resources(one, last),
    )


log = structlog.get_logger()

Share = Literal["all", "profiles", "shadows"]
"""What a replica runs of a policy: everything, or one half of it if shadows have replicas of their
own."""

NEEDED: tuple[Kind, ...] = ("filter", "score")
"""The kinds of service whose plugins must be known before a policy can be resolved."""


class NotKnownYetError(ConfigurationError):
    """Whether a document is right depends on a service that has not announced its plugins."""


class PolicyHolder:
    """Knows the policy once a filter and a scorer have announced their plugins.

    Attributes:
        resolved: The active policy, None until it is known.
        problem: Why there is none; empty if there is one.
        dependencies: What the plugins of its profiles depend on.
        catalogue_version: How often replicas have reported other plugins than before.
        revision: The revision of the active policy, "" without one.
        profiles: The schedulerNames of the pods that are ours.
        score_scale: The highest score sent to kube-scheduler.
        shadow_shares: The profiles with a shadow, and the part of the time that it may take, 0..1.
        versions: Which code plugins had.
        listeners: Called whenever a policy becomes active.
    """

    def __init__(self, document: Document) -> None:
        """Hold *document*, not resolved yet."""
        self.resolved: ResolvedPolicy | None = None
        self.problem = "waiting for a filter and a scorer replica to say which plugins they have"
        self.catalogue_version = 0
        self.revision = ""
        self.profiles: frozenset[str] = frozenset()
        self.score_scale = DEFAULT_SCORE_SCALE
        self.shadow_shares: Mapping[str, float] = {}
        self.versions = PluginVersions()
        self._document = document
        self.listeners: list[Callable[[PolicyHolder], None]] = []
        self._plugins: dict[str, list[PluginInfo]] = {}
        self._of_replicas: dict[str, dict[Hashable, list[PluginInfo]]] = {}
        self._known = asyncio.Event()
        self._binder_known = asyncio.Event()
        # What every bind asks for.
        self.dependencies = ProfileDependencies()
        self.bind_policy: pb.Policy | None = None
        self.bind_policy_is_known = False

    def learn(self, kind: str, plugins: Sequence[pb.Plugin], replica: Hashable = "") -> None:
        """Take over what a *replica* of a kind can run, and resolve the document with it."""
        self._of_replicas.setdefault(kind, {})[replica] = [_info(plugin) for plugin in plugins]
        self._combine(kind)
        if kind == "bind":
            self._binder_known.set()
            self.bind_policy_is_known = self._known.is_set()
        self._use(self._document)

    def forget(self, kind: str, replica: Hashable) -> None:
        """Leave out what a replica declared that is gone; the last one's declarations stay."""
        replicas = self._of_replicas.get(kind, {})
        if replicas.pop(replica, None) is not None and replicas and self._combine(kind):
            self._use(self._document)

    def _combine(self, kind: str) -> bool:
        """Take over what holds for all replicas of a kind; return whether that is a change."""
        infos = common_declarations(self._of_replicas[kind].values())
        is_change = infos != self._plugins.get(kind)
        self.catalogue_version += is_change
        self._plugins[kind] = infos
        return is_change

    def replace(self, document: Document) -> None:
        """Hold another document while there is no policy yet; nobody runs one that it changes."""
        self._document = document
        self._use(document)

    def resolve(self, document: Document) -> ResolvedPolicy:
        """Return what a document would mean now, for what replicas can run.

        Raises:
            ConfigurationError: One line for each mistake, or what is not known yet.
        """
        if missing := self._perhaps_of_binder(document):
            names = ", ".join(missing)
            raise NotKnownYetError(f"waiting for the binder to say whether it has {names}")
        everything = [info for infos in self._plugins.values() for info in infos]
        return resolve(document, Catalogue(everything))

    def activate(self, document: Document, resolved: ResolvedPolicy) -> None:
        """Take over a document and what it means; replicas that join get it from here on."""
        self._document, self.resolved, self.problem = document, resolved, ""
        self.revision, self.profiles = resolved.revision, frozenset(resolved.profile_names)
        self.score_scale, self.shadow_shares = resolved.score_scale, resolved.shadow_shares
        self.dependencies = dependencies_of(resolved)
        profiles = resolved.policies["bind"].profiles
        has_plugins = any(profile.plugins for profile in profiles)
        self.bind_policy = policy_for(resolved, "bind") if has_plugins else None
        self._known.set()
        self.bind_policy_is_known = self._binder_known.is_set()
        for listener in self.listeners:
            listener(self)

    def active(self) -> tuple[Document, ResolvedPolicy | None]:
        """Return the document, and what it means."""
        return self._document, self.resolved

    def _use(self, document: Document) -> None:
        """Resolve the document if enough is known."""
        if any(needed not in self._plugins for needed in NEEDED):
            return
        try:
            resolved = self.resolve(document)
        except ConfigurationError as error:
            if self.resolved is None:
                self.problem = str(error)
            if not isinstance(error, NotKnownYetError):
                log.warning("The policy cannot be used", error=str(error))
            return
        for warning in resolved.warnings:
            log.warning("A part of the policy has no effect", warning=warning)
        self.activate(document, resolved)

    async def for_bind(self) -> pb.Policy | None:
        """Return the policy for the binder, once it is known; None if it has no bind plugins.

        No pod is bound before if it might be without a plugin that it should have.
        """
        await self._binder_known.wait()
        if self.resolved is None and not self._may_have_bind_plugins():
            return None
        await self._known.wait()
        return self.bind_policy

    async def until_filters_are_known(self) -> None:
        """Wait until it is known which profiles have filter plugins."""
        if self.resolved is None and _may_filter(self._document):
            await self._known.wait()

    async def for_kind(self, kind: Kind, share: Share = "all") -> pb.Policy:
        """Return the policy for one kind of service, once it is known."""
        await self._known.wait()
        assert self.resolved is not None  # noqa: S101 - known
        return policy_for(self.resolved, kind, share)

    def _perhaps_of_binder(self, document: Document) -> list[str]:
        """Return the plugins that the document names and that only the binder may have.

        Empty once the binder is known: without need for its plugins, nobody waits for it.
        """
        if "bind" in self._plugins:
            return []
        at_bind, elsewhere = _names(document)
        return sorted(at_bind | (elsewhere - self._known_names(*NEEDED)))

    def _may_have_bind_plugins(self) -> bool:
        """Whether the document names plugins of the binder, or some that nobody has so far."""
        at_bind, elsewhere = _names(self._document)
        others = self._known_names(*NEEDED) - self._known_names("bind")
        return bool(at_bind or elsewhere - others)

    def _known_names(self, *kinds: Kind) -> set[str]:
        return {info.name for kind in kinds for info in self._plugins.get(kind, ())}

    def reads(self, *kinds: Kind) -> Mapping[ObjectKind, Sequence[str]]:
        """Return the additional kinds of objects that enabled plugins read, with these plugins."""
        return reads_of(self.resolved, *kinds) if self.resolved else {}

    @property
    def binders_read_snapshot(self) -> bool:
        """Whether an enabled bind plugin reads the snapshot."""
        if self.resolved is None:
            return False
        profiles = self.resolved.policies["bind"].profiles
        infos = (self.resolved.catalogue.get("bind", p.name) for q in profiles for p in q.plugins)
        return any(info is not None and info.reads_snapshot for info in infos)


def policy_for(resolved: ResolvedPolicy, kind: Kind, share: Share = "all") -> pb.Policy:
    """Return a policy, or a share of it, as one kind of service gets it."""
    policy = resolved.policies[kind]
    if share == "profiles":
        policy = replace(policy, shadows=())
    elif share == "shadows":
        policy = replace(policy, profiles=())
    return pb.Policy(revision=policy.revision, json=encode_effective(policy))


def reads_of(resolved: ResolvedPolicy, *kinds: Kind) -> Mapping[ObjectKind, Sequence[str]]:
    """Return the additional kinds of objects that a policy's plugins read, with these plugins."""
    readers: dict[ObjectKind, dict[str, None]] = {}
    for kind in kinds:
        for name in resolved.policies[kind].plugins:
            info = resolved.catalogue.get(kind, name)
            for read in info.reads if info else ():
                readers.setdefault(read, {})[name] = None
    return {kind: list(names) for kind, names in readers.items()}


def _names(document: Document) -> tuple[frozenset[str], frozenset[str]]:
    """Return the plugins that a document enables at the point `bind`, and all that it names."""
    profiles = document.configuration.profiles
    at_bind = {plugin.name for profile in profiles for plugin in profile.plugins.bind.enabled}
    shadows = (profile.shadow for profile in profiles if profile.shadow)
    parts: list[ConfiguredProfile | Shadow] = [*profiles, *shadows]
    named = {config.name for part in parts for config in part.plugin_config}
    for part in parts:
        for points in (part.plugins.multi_point, part.plugins.filter, part.plugins.score):
            named |= {plugin.name for plugin in points.enabled}
    return frozenset(at_bind), frozenset(named - {IN_TREE})


def _may_filter(document: Document) -> bool:
    """Whether a document may enable filter plugins."""
    plugins = [profile.plugins for profile in document.configuration.profiles]
    return any(each.multi_point.enabled or each.filter.enabled for each in plugins)


def _info(plugin: pb.Plugin) -> PluginInfo:
    return PluginInfo(
        name=plugin.name,
        points=frozenset(plugin.extension_points),
        origin=plugin.origin,
        args_schema=MessageToDict(plugin.arguments_schema),
        default_args=MessageToDict(plugin.default_arguments),
        reads=tuple(kind_from_proto(kind) for kind in plugin.reads),
        depends_on=scope_from_proto(plugin.depends_on),
        reads_placements=plugin.reads_placements,
        pod_fields=tuple(plugin.pod_fields.paths) if plugin.HasField("pod_fields") else None,
        normalization=normalization_from_proto(plugin.normalization),
        reads_snapshot=plugin.reads_snapshot,
        weight=plugin.default_weight or 1,
        time_budget=from_duration(plugin.time_budget) or DEFAULT_TIME_BUDGET,
        managed_resources=tuple(plugin.managed_resources),
    )
