"""From the document to the effective policy: merge, check against the catalogue, fill in.

Called by the gateway for each new policy or catalogue, and by `moorage config`, which shows it too.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import yaml

from moorage.errors import suggestion
from moorage.plugin.values import DEFAULT_TIME_BUDGET
from moorage.units.durations import format_duration
from moorage_host.policy.catalogue import BUILT_IN, IN_TREE, KINDS, Catalogue, Kind
from moorage_host.policy.checks import Problem, argument_problems, child, merged, schema_problems
from moorage_host.policy.document import (
    API_VERSION,
    KIND,
    ConfiguredProfile,
    Document,
    PluginConfig,
    Shadow,
)
from moorage_host.policy.effective import (
    SET_TO_DEFAULT,
    EffectivePlugin,
    EffectivePolicy,
    EffectiveProfile,
    encode_effective,
    revision_of,
    shadow_of,
)
from moorage_host.policy.merge import (
    ALL,
    Entry,
    EntrySet,
    default_failure_policy,
    expand,
    in_tree_names,
    merge_multi_point,
    overlay,
)


@dataclass(frozen=True, kw_only=True)
class ResolvedPolicy:
    """A policy that is ready to run.

    Attributes:
        source: Where the document came from, usually a file.
        score_scale: The highest integer sent to kube-scheduler: 10, 100 or 1000.
        policies: What each kind of service runs.
        shadow_shares: The part of the time that may be spent on the shadow of a profile, 0..1; the
            other profiles have none.
        warnings: One line for each thing that is allowed but has no effect.
        catalogue: The plugins that it was resolved against.
    """

    source: str
    score_scale: int
    policies: Mapping[Kind, EffectivePolicy]
    shadow_shares: Mapping[str, float]
    warnings: tuple[str, ...]
    catalogue: Catalogue

    @cached_property
    def revision(self) -> str:
        """A short hash of all that takes effect."""
        salt = f"{self.score_scale} {sorted(self.shadow_shares.items())}"
        return revision_of(*(self.policies[kind] for kind in KINDS), salt=salt)

    @property
    def profile_names(self) -> tuple[str, ...]:
        """The schedulerNames that have a profile, in the order of the document."""
        return tuple(profile.name for profile in self.policies["filter"].profiles)

    def for_kind(self, kind: Kind) -> bytes:
        """Return what a replica of this kind gets, as JSON; see `decode_effective`."""
        return encode_effective(self.policies[kind])

    def describe(self) -> dict[str, Any]:
        """Return the policy in the document's own form, with every default filled in."""
        per_kind = zip(*(self.policies[kind].profiles for kind in KINDS), strict=True)
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "scoreScale": self.score_scale,
            "profiles": [
                self._describe_profile(dict(zip(KINDS, profiles, strict=True)))
                for profiles in per_kind
            ],
        }

    def to_yaml(self) -> str:
        """Return `describe` as YAML text, which is itself a valid document."""
        return yaml.dump(
            self.describe(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
        )

    def _describe_profile(self, profiles: Mapping[Kind, EffectiveProfile]) -> dict[str, Any]:
        name = profiles["filter"].name
        share = self.shadow_shares.get(name)
        return {
            "schedulerName": name,
            **self._describe_plugins(profiles),
            **({} if share is None else {"shadow": self._describe_shadow(name, share)}),
        }

    def _describe_shadow(self, profile: str, share: float) -> dict[str, Any]:
        shadows: dict[Kind, EffectiveProfile] = {
            kind: shadow
            for kind in KINDS
            for shadow in self.policies[kind].shadows
            if shadow.name == shadow_of(profile)
        }
        described = self._describe_plugins(shadows)
        for entries in described["plugins"].values():
            entries["disabled"] = [{"name": ALL}]  # nothing of the profile: it is all here
        return {**described, "maxShare": f"{share * 100:.4g}%"}

    def _describe_plugins(self, profiles: Mapping[Kind, EffectiveProfile]) -> dict[str, Any]:
        return {
            "plugins": {kind: _describe_set(kind, profile) for kind, profile in profiles.items()},
            "pluginConfig": list(self._describe_configs(profiles)),
        }

    def _describe_configs(self, profiles: Mapping[Kind, EffectiveProfile]) -> Iterator[Any]:
        uses: dict[str, dict[Kind, EffectivePlugin]] = {}
        for kind, profile in profiles.items():
            for plugin in profile.plugins:
                uses.setdefault(plugin.name, {})[kind] = plugin
        for name, by_kind in uses.items():
            yield {"name": name} | self._describe_config(name, by_kind)

    def _describe_config(self, name: str, uses: Mapping[Kind, EffectivePlugin]) -> dict[str, Any]:
        plugin = next(iter(uses.values()))
        defaults: dict[str, Any] = {}
        for kind in uses:
            info = self.catalogue.get(kind, name)
            defaults |= info.default_args if info else {}
        policies = {use.failure_policy for use in uses.values()}
        # A plugin of two kinds has two defaults, which one field cannot hold: it stays empty.
        failure_policy = {"failurePolicy": policies.pop()} if len(policies) == 1 else {}
        budget = {"timeBudget": format_duration(plugin.time_budget_seconds)}
        return {
            "args": defaults | plugin.args,
            **failure_policy,
            **({} if plugin.budget_is_by_size else budget),
        }


def _describe_set(kind: Kind, profile: EffectiveProfile) -> dict[str, Any]:
    weighted = kind == "score"
    return {
        "enabled": [
            {"name": plugin.name} | ({"weight": plugin.weight} if weighted else {})
            for plugin in profile.plugins
        ]
    }


class _Dumper(yaml.SafeDumper):
    """Repeats values that occur twice instead of writing anchors, which are hard to read."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def resolve(document: Document, catalogue: Catalogue) -> ResolvedPolicy:
    """Return the effective policy.

    Raises:
        ConfigurationError: One line for each mistake of the document in itself, each plugin that
            does not exist or is not of the point's kind, and each argument that a plugin does not
            take.
    """
    profiles = document.configuration.profiles or (ConfiguredProfile(),)
    resolvers: list[_Resolver] = []
    shadows: dict[str, _Resolver] = {}
    for i, profile in enumerate(profiles):
        path, name = child("profiles", i), profile.scheduler_name
        resolvers.append(_Resolver(document, catalogue, profile, name, path))
        if profile.shadow:
            path, base = f"{path}.shadow", resolvers[-1]
            shadows[name] = _Resolver(
                document, catalogue, profile.shadow, shadow_of(name), path, base
            )
    every = [*resolvers, *shadows.values()]
    found = [problem for r in every for problem in r.problems()]
    document.tree.refuse(merged(document.problems, found))
    return ResolvedPolicy(
        source=document.source,
        score_scale=document.configuration.score_scale,
        policies={
            kind: EffectivePolicy(
                profiles=tuple(r.effective(kind) for r in resolvers),
                shadows=tuple(r.effective(kind) for r in shadows.values() if kind in r.kinds),
            )
            for kind in KINDS
        },
        shadow_shares={p.scheduler_name: p.shadow.share for p in profiles if p.shadow},
        warnings=tuple(
            f"{document.tree.where(w.path)}: {w.message}" for r in every for w in r.warnings()
        ),
        catalogue=catalogue,
    )


class _Resolver:
    """One profile of a document, or the shadow of the profile *base*.

    Attributes:
        kinds: The kinds of plugins that run.
    """

    def __init__(
        self,
        document: Document,
        catalogue: Catalogue,
        part: ConfiguredProfile | Shadow,
        name: str,
        path: str,
        base: "_Resolver | None" = None,
    ) -> None:
        self._tree = document.tree
        self._catalogue = catalogue
        self._name = name
        self._path = path
        self._base = base
        self._written = part.plugins.by_point
        self.kinds = tuple(kind for kind in KINDS if kind in self._written)
        self._own_configs = {
            config.name: (config, f"{path}.pluginConfig[{i}]")
            for i, config in enumerate(part.plugin_config)
            if config.name
        }
        self._configs: dict[str, tuple[PluginConfig, str]] = self._own_configs
        self._own = {point: self._entries(point) for point in self._written}
        self._sets: dict[str, EntrySet] = self._own
        if base is not None:
            self._configs = base._configs | self._own_configs
            self._sets = {p: overlay(base._sets[p], own) for p, own in self._own.items()}
        self._multi_point = merge_multi_point(self._sets["multiPoint"])

    def effective(self, kind: Kind) -> EffectiveProfile:
        entries = self._enabled(kind)
        plugins = tuple(self._plugin(kind, entry) for entry in entries)
        return EffectiveProfile(name=self._name, plugins=plugins)

    def problems(self) -> Iterator[Problem]:
        for point, entries in self._own.items():
            for entry in entries.enabled:
                yield from self._entry_problems(point, entry)
        for name, (config, path) in self._own_configs.items():
            if name not in self._catalogue:
                yield Problem(f"{path}.name", self._unknown(name))
            for kind in self._catalogue.kinds(name):
                yield from self._argument_problems(kind, name, config.args, f"{path}.args")
        for kind in self.kinds:
            for entry in self._enabled(kind):
                if entry.name not in self._configs:
                    yield from self._argument_problems(kind, entry.name, {}, entry.path)

    def warnings(self) -> Iterator[Problem]:
        for point, written in self._written.items():
            for index, plugin in enumerate(written.disabled):
                if reason := self._nothing_to_disable(point, plugin.name):
                    path = f"{self._path}.plugins.{point}.disabled[{index}].name"
                    yield Problem(path, f"nothing to disable: {reason}")
        multi_point = self._own["multiPoint"]
        for entry in multi_point.enabled:
            if entry.name == IN_TREE and ALL in multi_point.disabled:
                yield Problem(f"{entry.path}.name", f"`{IN_TREE}` has no effect: `*` is disabled")
        for point in set(self._own) & {"filter", "bind"}:
            for entry in self._own[point].enabled:
                if entry.weight:
                    yield Problem(f"{entry.path}.weight", "only score plugins have a weight")
        running = {entry.name for kind in self.kinds for entry in self._enabled(kind)}
        for name, (_, path) in self._own_configs.items():
            if name not in running:
                yield Problem(f"{path}.name", f"plugin `{name}` is configured but not enabled")

    def _nothing_to_disable(self, point: str, name: str) -> str:
        """Return why disabling a name has no effect at a point, "" if it has one."""
        if name == ALL or (self._base is not None and self._base.has(point, name)):
            return ""
        if name == IN_TREE:
            return f"the profile does not enable `{IN_TREE}`"
        if name not in self._catalogue:
            return self._unknown(name)
        enabled = {entry.name for entry in self._sets["multiPoint"].enabled}
        if point != "multiPoint":
            from_multi_point = {entry.name for entry in self._multi_point.enabled}
            return "" if name in from_multi_point else f"multiPoint does not enable `{name}`"
        if name in in_tree_names(enabled):
            return ""
        return f"only `{IN_TREE}` could enable `{name}`, and multiPoint does not enable `{IN_TREE}`"

    def has(self, point: str, name: str) -> bool:
        """Whether a plugin is enabled at a point, or would be if the point were one of its own."""
        sets = (self._sets["multiPoint"], self._multi_point, self._sets[point])
        return any(entry.name == name for each in sets for entry in each.enabled)

    def _enabled(self, kind: Kind) -> list[Entry]:
        known = self._catalogue
        return expand(
            self._sets[kind],
            self._multi_point.enabled,
            lambda name: known.get(kind, name) is not None,
        )

    def _plugin(self, kind: Kind, entry: Entry) -> EffectivePlugin:
        config, path = self._configs.get(entry.name, (None, ""))
        where = f"{path}.args" if config and config.args else path or entry.path
        info = self._catalogue.get(kind, entry.name)
        set_budget = config.time_budget_seconds if config else None
        if set_budget == DEFAULT_TIME_BUDGET:
            set_budget = SET_TO_DEFAULT
        default_budget = info.time_budget if info else DEFAULT_TIME_BUDGET
        return EffectivePlugin(
            name=entry.name,
            weight=self._weight(kind, entry),
            args=config.args if config else {},
            failure_policy=(config and config.failure_policy) or default_failure_policy(kind),
            time_budget_seconds=default_budget if set_budget is None else set_budget,
            path=self._tree.where(where),
        )

    def _weight(self, kind: Kind, entry: Entry) -> int:
        info = self._catalogue.get(kind, entry.name)
        return (entry.weight or (info.weight if info else 1)) if kind == "score" else 1

    def _entry_problems(self, point: str, entry: Entry) -> Iterator[Problem]:
        kinds = self._catalogue.kinds(entry.name)
        if point == "multiPoint" and entry.name == IN_TREE:
            return
        if not kinds:
            further = (IN_TREE,) if point == "multiPoint" else ()
            yield Problem(f"{entry.path}.name", self._unknown(entry.name, further))
        elif not set(kinds) & set(self.kinds):
            message = f"plugin `{entry.name}` acts on binds only, and a shadow never binds"
            yield Problem(f"{entry.path}.name", message)
        elif point not in {"multiPoint", *kinds}:
            message = (
                f"plugin `{entry.name}` has no {point} part: enable it at {' or '.join(kinds)}"
            )
            yield Problem(f"{entry.path}.name", message)

    def _argument_problems(
        self, kind: Kind, name: str, args: Mapping[str, Any], path: str
    ) -> Iterable[Problem]:
        info = self._catalogue.get(kind, name)
        if info is not None and info.args_type is not None:
            return argument_problems(args, info.args_type, path)
        if info is not None and info.args_schema is not None:
            return schema_problems(args, info.args_schema, path)
        return ()

    def _unknown(self, name: str, further: tuple[str, ...] = ()) -> str:
        near = suggestion(name, (*self._catalogue.names(), *further))
        origins = ", ".join(self._catalogue.origins()) or "nowhere, no service runs"
        step = "; --plugin PATH adds yours" if origins == BUILT_IN and not near else ""
        return f"unknown plugin `{name}` (plugins come from: {origins}{step}){near}"

    def _entries(self, point: str) -> EntrySet:
        written, path = self._written[point], f"{self._path}.plugins.{point}.enabled"
        enabled = [
            Entry(plugin.name, plugin.weight, child(path, i))
            for i, plugin in enumerate(written.enabled)
            if plugin.name
        ]
        return EntrySet(tuple(enabled), frozenset(plugin.name for plugin in written.disabled))
