"""Checks and shows policies, with the plugins of this machine."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from moorage import FilterPlugin, ScorePlugin
from moorage.plugin import extension_points
from moorage.policy import (
    Catalogue,
    PluginInfo,
    ResolvedPolicy,
    check_arguments,
    default_document,
    load,
    resolve,
)
from moorage.registry import Registry, load_registry
from services.filter.plugins import BUILT_INS as FILTERS
from services.scorer.plugins import BUILT_INS as SCORERS


def resolved_policy(config: Path | None, plugins: Sequence[Path]) -> ResolvedPolicy:
    """Resolve a policy, or the default one, against built-in, installed and given plugins.

    Raises:
        ConfigurationError: The policy or a plugin is wrong; says where.
    """
    registries = (
        load_registry(FilterPlugin, FILTERS, plugins),
        load_registry(ScorePlugin, SCORERS, plugins),
    )
    document = load(config) if config else default_document()
    policy = resolve(document, Catalogue(i for r in registries for i in _infos(r)))
    for registry, kind in zip(registries, ("filter", "score"), strict=True):
        _check_arguments(policy, registry, kind)
    return policy


def _infos(registry: Registry) -> Iterator[PluginInfo]:
    for name in registry:
        registered = registry.get(name)
        assert registered is not None  # noqa: S101 - it has just named it
        arguments = registered.kind.Args
        yield PluginInfo(
            name=name,
            points=frozenset(extension_points(registered.kind)),
            origin=registered.origin,
            args_schema=msgspec.json.schema(arguments),
            default_args=_defaults(arguments),
        )


def _defaults(arguments: type[msgspec.Struct]) -> dict[str, object]:
    try:
        defaults: dict[str, object] = msgspec.to_builtins(arguments())
    except TypeError:  # some arguments are required
        return {}
    return defaults


def _check_arguments(policy: ResolvedPolicy, registry: Registry, kind: str) -> None:
    effective = policy.policies["filter" if kind == "filter" else "score"]
    for profile in effective.profiles:
        for plugin in profile.plugins:
            registered = registry.get(plugin.name)
            if registered is not None:
                check_arguments(plugin.args, registered.kind.Args, plugin.path)
