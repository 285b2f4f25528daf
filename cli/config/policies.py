"""Chooses, checks and shows policies, with the plugins of this machine."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from moorage import BindPlugin, FilterPlugin, ScorePlugin
from moorage.errors import ConfigurationError
from moorage.models import ObjectKind
from moorage.plugin.hooks import Plugin, extension_points
from moorage_host.plugins.registry import Registry, load_registry
from moorage_host.policy import (
    API_VERSION,
    DEFAULT_PROFILE,
    KIND,
    Catalogue,
    Kind,
    PluginInfo,
    ResolvedPolicy,
    default_document,
    examine,
    parse,
    read,
    resolve,
)
from services.binder.plugins import BUILT_INS as BINDERS
from services.filter.plugins import BUILT_INS as FILTERS
from services.scorer.plugins import BUILT_INS as SCORERS

FROM_PLUGINS = "policy made from --plugin"

NO_WEIGHTS: Mapping[Path, int] = {}

KINDS: Mapping[Kind, tuple[type[Plugin], Sequence[type[Plugin]]]] = {
    "filter": (FilterPlugin, FILTERS),
    "score": (ScorePlugin, SCORERS),
    "bind": (BindPlugin, BINDERS),
}
"""The kinds whose plugins can be loaded here, and the built-in ones."""

Registries = Mapping[Kind, Registry]
"""The plugins that can be loaded here, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPolicy:
    """The policy that runs.

    Attributes:
        text: The document, if it is neither a file nor the default.
        notes: What was enabled without a policy, and what has no effect.
    """

    resolved: ResolvedPolicy
    text: str = ""
    notes: tuple[str, ...] = ()

    def readers(self, kinds: Iterable[Kind] = KINDS) -> Iterator[tuple[ObjectKind, str]]:
        """Yield the additional kinds of objects that plugins of *kinds* read, each with one."""
        for kind in kinds:
            for name in self.resolved.policies[kind].plugins:
                info = self.resolved.catalogue.get(kind, name)
                yield from ((read, name) for read in (info.reads if info else ()))


def choose_policy(
    config: Path | None, plugins: Sequence[Path], weights: Mapping[Path, int] = NO_WEIGHTS
) -> ChosenPolicy:
    """Resolve the policy in *config*; without one, a profile with just *plugins*.

    Args:
        config: The policy file.
        plugins: Files and folders with plugins beside the built-in and installed ones.
        weights: The weight of the score plugins of some of them, where there is no policy file.

    Raises:
        ConfigurationError: The policy or a plugin is wrong; the message names the place.
    """
    registries = load_registries(plugins)
    given = _given(registries)
    if config is None and given:
        return _made(given, registries, _weights(registries["score"], weights))
    if config is None:
        return ChosenPolicy(resolved=resolve(default_document(), _catalogue(registries)))
    if weights:
        path, weight = next(iter(weights.items()))
        raise ConfigurationError(
            f"--plugin {path}={weight}: {config} gives the weights; set `weight` at "
            "plugins.multiPoint.enabled there"
        )
    resolved = resolve_file(config, registries)
    unused = (f"plugin {text}" for text in unused_plugins(resolved, registries))
    return ChosenPolicy(resolved=resolved, notes=(*resolved.warnings, *unused))


def load_registries(plugins: Sequence[Path]) -> Registries:
    """Load the built-in and installed plugins, and those of files and folders.

    Raises:
        PluginLoadError: One cannot be loaded; the message names the place.
    """
    return {kind: load_registry(*KINDS[kind], plugins) for kind in KINDS}


def resolve_file(file: Path, registries: Registries) -> ResolvedPolicy:
    """Resolve the policy in a file.

    Raises:
        ConfigurationError: One line for each mistake, with its place, by line.
    """
    return resolve(examine(read(file), str(file)), _catalogue(registries))


def unused_plugins(resolved: ResolvedPolicy, registries: Registries) -> list[str]:
    """Return which plugins of --plugin a policy does not enable, and what to do."""
    given = _given(registries)
    running = {name for policy in resolved.policies.values() for name in policy.plugins}
    return [
        f"{name} is enabled in no profile of {resolved.source}: "
        "add it to plugins.multiPoint.enabled"
        for name in sorted(given - running)
    ]


def _weights(scores: Registry, weights: Mapping[Path, int]) -> Mapping[str, int]:
    """Return the weights by the names of the score plugins.

    Raises:
        ConfigurationError: A path has none.
    """
    found: dict[str, int] = {}
    for path, weight in weights.items():
        names = [name for name in scores if _is_from(scores, name, path.resolve())]
        if not names:
            raise ConfigurationError(
                f"--plugin {path}={weight}: only score plugins have a weight, and {path} has none"
            )
        found |= dict.fromkeys(names, weight)
    return found


def _is_from(registry: Registry, name: str, path: Path) -> bool:
    registered = registry.get(name)
    origin = Path(registered.origin) if registered else Path()
    return path in (origin, origin.parent)


def _made(given: set[str], registries: Registries, weights: Mapping[str, int]) -> ChosenPolicy:
    names = sorted(given)
    entries = [
        {"name": name} | ({"weight": weights[name]} if name in weights else {}) for name in names
    ]
    enabled = {"multiPoint": {"enabled": entries}}
    profile = {"schedulerName": DEFAULT_PROFILE, "plugins": enabled}
    document = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}
    text = yaml.safe_dump(document, sort_keys=False)
    try:
        resolved = resolve(parse(text, FROM_PLUGINS), _catalogue(registries))
    except ConfigurationError as error:
        config = "".join(f"  - {{name: {name}, args: {{}}}}\n" for name in names)
        raise ConfigurationError(
            f"{error}\ngive arguments in a policy, --config FILE, such as:\n"
            f"{text}  pluginConfig:\n{config.rstrip()}"
        ) from error
    note = f"without --config, profile {DEFAULT_PROFILE} enables just {', '.join(names)}"
    return ChosenPolicy(resolved=resolved, text=text, notes=(note, *resolved.warnings))


def _given(registries: Registries) -> set[str]:
    """Return the names of the plugins that are there only because of --plugin."""
    built_in = load_registries(())
    return {name for kind in KINDS for name in set(registries[kind]) - set(built_in[kind])}


def _catalogue(registries: Registries) -> Catalogue:
    return Catalogue(info for registry in registries.values() for info in plugin_infos(registry))


def plugin_infos(registry: Registry) -> Iterator[PluginInfo]:
    """Yield what policies have to know of the plugins of one kind."""
    for name in registry:
        registered = registry.get(name)
        assert registered is not None  # noqa: S101 - it has just named it
        arguments = registered.kind.Args
        yield PluginInfo(
            name=name,
            points=frozenset(extension_points(registered.kind)),
            origin=registered.origin,
            args_type=arguments,
            default_args=_defaults(arguments),
            reads_placements=registered.kind.reads_placements,
            managed_resources=registered.kind.managed_resources,
            weight=registered.kind.weight if issubclass(registered.kind, ScorePlugin) else 1,
            time_budget=registered.kind.time_budget,
            reads=registered.kind.reads,
        )


def _defaults(arguments: type[msgspec.Struct]) -> dict[str, object]:
    try:
        defaults: dict[str, object] = msgspec.to_builtins(arguments())
    except TypeError:  # some arguments are required
        return {}
    return defaults
