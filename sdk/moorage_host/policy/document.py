"""Reads the policy document, MoorageConfiguration, with all its mistakes; `fields` has its fields.

What needs no catalogue of plugins is checked here; whether plugins exist is for `resolve`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.errors import ConfigurationError
from moorage.plugin.base import MAX_TIME_BUDGET
from moorage.units.durations import format_duration
from moorage_host.policy.catalogue import IN_TREE
from moorage_host.policy.checks import find_problems, salvage
from moorage_host.policy.effective import shadow_of
from moorage_host.policy.fields import (
    API_VERSION,
    KIND,
    MoorageConfiguration,
    PluginConfig,
    PluginSet,
    Profile,
    Shadow,
)
from moorage_host.policy.merge import ALL
from moorage_host.policy.problems import Problem, child, merged
from moorage_host.policy.yaml_lines import MAX_BYTES, Tree, read_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A MoorageConfiguration, and where its parts stand.

    Attributes:
        configuration: What it says; without the parts that are wrong.
        tree: The text as plain values with their lines.
        problems: What is wrong with it in itself.
    """

    configuration: MoorageConfiguration
    tree: Tree
    problems: tuple[Problem, ...] = ()

    @property
    def source(self) -> str:
        """Where the text came from, usually a file."""
        return self.tree.source


def read(path: Path) -> str:
    """Return the text of a policy file.

    Raises:
        ConfigurationError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1).decode()
    except OSError as error:
        raise ConfigurationError(f"{path}:1: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}:1: cannot be read: it is not UTF-8") from error


def parse(text: str, source: str) -> Document:
    """Read a policy that is right in itself from YAML or JSON text; see `examine`.

    Raises:
        ConfigurationError: One line for each mistake.
    """
    document = examine(text, source)
    document.tree.refuse(list(document.problems))
    return document


def examine(text: str, source: str) -> Document:
    """Read a policy from YAML or JSON text with its mistakes, which `resolve` refuses with its own.

    Args:
        text: The only document in it is the policy.
        source: What to call it in messages, such as the file name.

    Raises:
        ConfigurationError: It is no policy at all.
    """
    tree = read_tree(text, source)
    if not _is_policy(tree.value):
        tree.refuse(_header_problems(tree.value))
    value = _without_nulls(tree.value)
    problems = merged(tree.problems, find_problems(value, MoorageConfiguration, ""))
    configuration = salvage(value, MoorageConfiguration)
    problems = merged(problems, _profile_problems(configuration, tree))
    return Document(configuration=configuration, tree=tree, problems=tuple(problems))


def default_document() -> Document:
    """Return the policy without a file: one profile, in which no plugin is enabled."""
    return parse(f"apiVersion: {API_VERSION}\nkind: {KIND}\n", "default policy")


def _is_policy(value: Any) -> bool:
    """Whether a document is meant to be one of ours, of another version perhaps."""
    if not isinstance(value, dict):
        return False
    group = str(value.get("apiVersion", API_VERSION)).partition("/")[0]
    return group == API_VERSION.partition("/")[0] and value.get("kind", KIND) == KIND


def _header_problems(value: Any) -> list[Problem]:
    """Return why it is another kind of document: its fields would all be unknown."""
    if not isinstance(value, dict):
        return find_problems(value, MoorageConfiguration, "")
    header = {name: value[name] for name in ("apiVersion", "kind") if name in value}
    return find_problems(header, MoorageConfiguration, "")


def _without_nulls(value: Any, key: str = "") -> Any:
    """Drop fields with nothing after the colon, as Kubernetes does; arguments stay as they are."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict) and key != "args":
        return {k: _without_nulls(v, k) for k, v in value.items() if v is not None}
    return value


def _profile_problems(configuration: MoorageConfiguration, tree: Tree) -> Iterator[Problem]:
    names = []
    for index, profile in enumerate(configuration.profiles):
        path = child("profiles", index)
        name_path = f"{path}.schedulerName"
        names.append((profile.scheduler_name, name_path))
        if len(configuration.profiles) > 1 and name_path not in tree.lines:
            yield Problem(path, "field `schedulerName` is missing: there are several profiles")
        yield from _plugin_problems(profile, path)
        if profile.shadow is not None:
            yield from _plugin_problems(profile.shadow, f"{path}.shadow")
    yield from _duplicates(names)
    yield from _taken_problems(configuration)


def _taken_problems(configuration: MoorageConfiguration) -> Iterator[Problem]:
    shadows = {shadow_of(p.scheduler_name) for p in configuration.profiles if p.shadow}
    for index, profile in enumerate(configuration.profiles):
        if profile.scheduler_name in shadows:
            message = "a shadow has this name: choose another one"
            yield Problem(f"{child('profiles', index)}.schedulerName", message)


def _plugin_problems(part: Profile | Shadow, path: str) -> Iterator[Problem]:
    for point, entries in part.plugins.by_point.items():
        yield from _enabled_problems(entries, f"{path}.plugins.{point}.enabled")
        yield from _in_tree_problems(entries, point, f"{path}.plugins.{point}")
        if isinstance(part, Profile):  # a shadow starts from what its profile enables
            yield from _disabled_problems(entries, f"{path}.plugins.{point}.disabled")
    yield from _config_problems(part.plugin_config, f"{path}.pluginConfig")


def _enabled_problems(entries: PluginSet, path: str) -> Iterator[Problem]:
    named = [(plugin.name, f"{child(path, i)}.name") for i, plugin in enumerate(entries.enabled)]
    for name, where in named:
        if name == ALL:
            yield Problem(where, "`*` may only be disabled; enable plugins by their names")
    yield from _duplicates(named)


def _in_tree_problems(entries: PluginSet, point: str, path: str) -> Iterator[Problem]:
    for index, enabled in enumerate(entries.enabled):
        if enabled.name != IN_TREE:
            continue
        where = child(f"{path}.enabled", index)
        if point != "multiPoint":
            yield Problem(f"{where}.name", f"`{IN_TREE}` may only be enabled in multiPoint")
        elif enabled.weight:
            message = f"`{IN_TREE}` has no weight: enable its score plugins with other weights"
            yield Problem(f"{where}.weight", message)


def _disabled_problems(entries: PluginSet, path: str) -> Iterator[Problem]:
    for index, disabled in enumerate(entries.disabled):
        if disabled.name == IN_TREE:
            where = f"{child(path, index)}.name"
            message = f"`{IN_TREE}` cannot be disabled, as nothing enables it by default"
            yield Problem(where, message)


def _config_problems(given: Sequence[PluginConfig], path: str) -> Iterator[Problem]:
    configs = [(config, child(path, index)) for index, config in enumerate(given)]
    for config, where in configs:
        try:
            budget = config.time_budget_seconds
            in_range = budget is None or 0 < budget <= MAX_TIME_BUDGET
            message = f"must be above 0s and at most {format_duration(MAX_TIME_BUDGET)}"
        except ValueError as error:
            in_range, message = False, str(error)
        if not in_range:
            yield Problem(f"{where}.timeBudget", message)
        if config.name == IN_TREE:
            message = f"`{IN_TREE}` is a list of plugins: configure each by its own name"
            yield Problem(f"{where}.name", message)
    yield from _duplicates((config.name, f"{where}.name") for config, where in configs)


def _duplicates(named: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for name, path in named:
        if not name:
            continue  # a mistake that is reported already
        if name in first:
            yield Problem(path, f'"{name}" is there already, at {first[name]}')
        first.setdefault(name, path)
