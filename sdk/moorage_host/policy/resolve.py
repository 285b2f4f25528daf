"""From the document to the effective policy: merge, check against the catalogue, fill in.

Called by the gateway for each new policy or catalogue, and by `moorage config`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moorage.errors import suggestion
from moorage.plugin.base import DEFAULT_TIME_BUDGET
from moorage_host.policy.arguments import argument_problems, schema_problems
from moorage_host.policy.catalogue import BUILT_IN, IN_TREE, KINDS, Catalogue, Kind
from moorage_host.policy.defaults import (
    default_failure_policy,
    in_tree_names,
    merge_multi_point,
)
from moorage_host.policy.document import Document
from moorage_host.policy.effective import (
    EffectivePlugin,
    EffectivePolicy,
    EffectiveProfile,
    shadow_of,
)
from moorage_host.policy.fields import PluginConfig, Profile, Shadow
from moorage_host.policy.merge import ALL, Entry, EntrySet, expand, overlay
from moorage_host.policy.problems import Problem, child, merged
from moorage_host.policy.resolved import ResolvedPolicy


def resolve(document: Document, catalogue: Catalogue) -> ResolvedPolicy:
    """Return the effective policy.

    Raises:
        ConfigurationError: One line for each mistake of the document in itself, each plugin that
            does not exist or is not of the point's kind, and each argument that a plugin does not
            take.
    """
    profiles = document.configuration.profiles or (Profile(),)
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
        part: Profile | Shadow,
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
        return EffectivePlugin(
            name=entry.name,
            weight=self._weight(kind, entry),
            args=config.args if config else {},
            failure_policy=(config and config.failure_policy) or default_failure_policy(kind),
            time_budget_seconds=self._time_budget(kind, entry.name),
            path=self._tree.where(where),
        )

    def _weight(self, kind: Kind, entry: Entry) -> int:
        info = self._catalogue.get(kind, entry.name)
        return (entry.weight or (info.weight if info else 1)) if kind == "score" else 1

    def _time_budget(self, kind: Kind, name: str) -> float:
        """Return what the policy sets, or else what the plugin's class declares."""
        config, _ = self._configs.get(name, (None, ""))
        if config and config.time_budget_seconds is not None:
            return config.time_budget_seconds
        info = self._catalogue.get(kind, name)
        return info.time_budget if info else DEFAULT_TIME_BUDGET

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
