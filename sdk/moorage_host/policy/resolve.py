"""From the document to the effective policy: merge, check against the catalogue, fill in.

Called by the gateway for each new policy or catalogue, and by `moorage config`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moorage.errors import suggestion
from moorage.plugin.base import DEFAULT_TIME_BUDGET
from moorage_host.policy.arguments import argument_problems
from moorage_host.policy.catalogue import IN_TREE, KINDS, Catalogue, Kind
from moorage_host.policy.defaults import (
    default_failure_policy,
    in_tree_names,
    merge_multi_point,
)
from moorage_host.policy.document import POINTS, Document, PluginSet, Profile
from moorage_host.policy.effective import EffectivePlugin, EffectivePolicy, EffectiveProfile
from moorage_host.policy.merge import ALL, Entry, EntrySet, expand
from moorage_host.policy.problems import Problem, child, merged
from moorage_host.policy.resolved import ResolvedPolicy
from moorage_host.policy.schema import schema_problems


def resolve(document: Document, catalogue: Catalogue) -> ResolvedPolicy:
    """Return the effective policy.

    Raises:
        ConfigurationError: One line for each mistake of the document in itself, each plugin that
            does not exist or is not of the point's kind, and each argument that a plugin does not
            take.
    """
    profiles = document.configuration.profiles or (Profile(),)
    resolvers = [_Resolver(document, catalogue, i, p) for i, p in enumerate(profiles)]
    found = [problem for r in resolvers for problem in r.problems()]
    document.tree.refuse(merged(document.problems, found))
    return ResolvedPolicy(
        source=document.source,
        score_scale=document.configuration.score_scale,
        policies={
            kind: EffectivePolicy(profiles=tuple(r.effective(kind) for r in resolvers))
            for kind in KINDS
        },
        warnings=tuple(
            f"{document.tree.where(w.path)}: {w.message}" for r in resolvers for w in r.warnings()
        ),
        catalogue=catalogue,
    )


class _Resolver:
    """One profile of a document."""

    def __init__(
        self, document: Document, catalogue: Catalogue, index: int, profile: Profile
    ) -> None:
        self._tree = document.tree
        self._catalogue = catalogue
        self._profile = profile
        self._path = child("profiles", index)
        self._configs = {
            config.name: (config, f"{self._path}.pluginConfig[{i}]")
            for i, config in enumerate(profile.plugin_config)
            if config.name
        }
        self._sets = {point: self._entries(point) for point in POINTS}
        self._multi_point = merge_multi_point(self._sets["multiPoint"])

    def effective(self, kind: Kind) -> EffectiveProfile:
        entries = self._enabled(kind)
        plugins = tuple(self._plugin(kind, entry) for entry in entries)
        return EffectiveProfile(name=self._profile.scheduler_name, plugins=plugins)

    def problems(self) -> Iterator[Problem]:
        for point, entries in self._sets.items():
            for entry in entries.enabled:
                yield from self._entry_problems(point, entry)
        for name, (config, path) in self._configs.items():
            if name not in self._catalogue:
                yield Problem(f"{path}.name", self._unknown(name))
            for kind in self._catalogue.kinds(name):
                yield from self._argument_problems(kind, name, config.args, f"{path}.args")
        for kind in KINDS:
            for entry in self._enabled(kind):
                if entry.name not in self._configs:
                    yield from self._argument_problems(kind, entry.name, {}, entry.path)

    def warnings(self) -> Iterator[Problem]:
        for point in POINTS:
            for index, plugin in enumerate(self._written(point).disabled):
                if reason := self._nothing_to_disable(point, plugin.name):
                    path = f"{self._path}.plugins.{point}.disabled[{index}].name"
                    yield Problem(path, f"nothing to disable: {reason}")
        multi_point = self._sets["multiPoint"]
        for entry in multi_point.enabled:
            if entry.name == IN_TREE and ALL in multi_point.disabled:
                yield Problem(f"{entry.path}.name", f"`{IN_TREE}` has no effect: `*` is disabled")
        for point in ("filter", "bind"):
            for entry in self._sets[point].enabled:
                if entry.weight:
                    yield Problem(f"{entry.path}.weight", "only score plugins have a weight")
        running = {entry.name for kind in KINDS for entry in self._enabled(kind)}
        for name, (_, path) in self._configs.items():
            if name not in running:
                yield Problem(f"{path}.name", f"plugin `{name}` is configured but not enabled")

    def _nothing_to_disable(self, point: str, name: str) -> str:
        """Return why disabling a name has no effect at a point, "" if it has one."""
        if name == ALL:
            return ""
        if name not in self._catalogue:
            return self._unknown(name)
        enabled = {entry.name for entry in self._sets["multiPoint"].enabled}
        if point != "multiPoint":
            from_multi_point = {entry.name for entry in self._multi_point.enabled}
            return "" if name in from_multi_point else f"multiPoint does not enable `{name}`"
        if name in in_tree_names(enabled):
            return ""
        return f"only `{IN_TREE}` could enable `{name}`, and multiPoint does not enable `{IN_TREE}`"

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
        return f"unknown plugin `{name}` (plugins come from: {origins}){near}"

    def _written(self, point: str) -> PluginSet:
        plugins = self._profile.plugins
        sets = (plugins.multi_point, plugins.filter, plugins.score, plugins.bind)
        return dict(zip(POINTS, sets, strict=True))[point]

    def _entries(self, point: str) -> EntrySet:
        written, path = self._written(point), f"{self._path}.plugins.{point}.enabled"
        enabled = [
            Entry(plugin.name, plugin.weight, child(path, i))
            for i, plugin in enumerate(written.enabled)
            if plugin.name
        ]
        return EntrySet(tuple(enabled), frozenset(plugin.name for plugin in written.disabled))
