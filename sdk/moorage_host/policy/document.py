"""Reads the policy document, MoorageConfiguration, with all its mistakes.

What needs no catalogue of plugins is checked here; whether plugins exist is for `resolve`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from moorage.errors import ConfigurationError
from moorage.plugin.values import MAX_TIME_BUDGET
from moorage.units.durations import format_duration, parse_duration
from moorage_host.policy.catalogue import IN_TREE
from moorage_host.policy.checks import Problem, child, find_problems, merged, salvage
from moorage_host.policy.effective import FailurePolicy, shadow_of
from moorage_host.policy.kinds import OURS, what_it_is
from moorage_host.policy.merge import ALL
from moorage_host.policy.yaml_lines import MAX_BYTES, Tree, read_tree

MOST_PROFILES = 1000
"""Every replica prepares each profile."""

API_VERSION = "moorage.io/v1alpha1"
KIND = "MoorageConfiguration"
DEFAULT_PROFILE = "moorage"
DEFAULT_SCORE_SCALE: Final = 100
DEFAULT_MAX_SHARE: Final = "10%"

_MAX_WEIGHT = 2**31 - 1
_Name = Annotated[str, msgspec.Meta(min_length=1, title="a name")]
_Weight = Annotated[
    int, msgspec.Meta(ge=0, le=_MAX_WEIGHT, title="an integer from 0 to 2147483647")
]
_Duration = Annotated[str, msgspec.Meta(min_length=1, title='a duration such as "500ms"')]
_Percentage = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(100|[0-9]{1,2}(\.[0-9]{1,2})?)%$",
        title='a percentage such as "10%", up to "100%"',
    ),
]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the document."""


class ConfiguredPlugin(_Part, frozen=True, kw_only=True):
    """A plugin to run; a weight of 0 means the default of the plugin."""

    name: _Name
    weight: _Weight = 0


class DisabledPlugin(_Part, frozen=True, kw_only=True):
    """A plugin not to run; `*` stands for all."""

    name: _Name


class PluginSet(_Part, frozen=True, kw_only=True):
    """What runs at one point beside or instead of what multiPoint enables."""

    enabled: tuple[ConfiguredPlugin, ...] = ()
    disabled: tuple[DisabledPlugin, ...] = ()


_FILTER = "the point `filter` stands for PreFilter and Filter"
_SCORE = "the point `score` stands for PreScore, Score and NormalizeScore"
_BIND = "the point `bind` stands for Permit, PreBind and PostBind"
_UPSTREAM = "this point belongs to kube-scheduler's own configuration"


class CyclePlugins(_Part, frozen=True, kw_only=True):
    """Plugins by point; multiPoint means every point that a plugin implements."""

    unknown_field_hints: ClassVar[Mapping[str, str]] = {
        "preFilter": _FILTER,
        "preScore": _SCORE,
        "normalizeScore": _SCORE,
        "permit": _BIND,
        "preBind": _BIND,
        "postBind": _BIND,
        "bind": "a shadow never binds",
        "reserve": "a filter plugin that has `wants_claim` runs it at the point `filter`",
    } | dict.fromkeys(("preEnqueue", "queueSort", "postFilter"), _UPSTREAM)

    multi_point: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    score: PluginSet = PluginSet()

    @property
    def by_point(self) -> Mapping[str, PluginSet]:
        """The sets by the names that the points have in the document."""
        fields = msgspec.structs.fields(self)
        return {field.encode_name: getattr(self, field.name) for field in fields}


class Plugins(CyclePlugins, frozen=True, kw_only=True):
    """The plugins of a profile, also those of binds."""

    bind: PluginSet = PluginSet()


class PluginConfig(_Part, frozen=True, kw_only=True):
    """A plugin's arguments and limits, at all its points in the profile."""

    name: _Name
    args: dict[str, Any] = {}
    failure_policy: FailurePolicy | None = None
    time_budget: _Duration = ""

    @property
    def time_budget_seconds(self) -> float | None:
        """The time that the plugin may take at each step; None leaves it to the plugin."""
        return parse_duration(self.time_budget) if self.time_budget else None


class Shadow(_Part, frozen=True, kw_only=True):
    """What another profile beside this one would do otherwise; it decides nothing."""

    plugins: CyclePlugins = CyclePlugins()
    plugin_config: tuple[PluginConfig, ...] = ()
    max_share: _Percentage = DEFAULT_MAX_SHARE

    @property
    def share(self) -> float:
        """The part of the time that may be spent on it, 0..1."""
        return float(self.max_share.rstrip("%")) / 100


class ConfiguredProfile(_Part, frozen=True, kw_only=True):
    """The plugins for the pods of one schedulerName."""

    scheduler_name: _Name = DEFAULT_PROFILE
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()
    shadow: Shadow | None = None


_ELSEWHERE = "this field belongs to kube-scheduler's own configuration"


class MoorageConfiguration(_Part, frozen=True, kw_only=True):
    """The whole document."""

    unknown_field_hints: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("extenders", "leaderElection", "parallelism", "clientConnection"), _ELSEWHERE
    )

    api_version: Literal["moorage.io/v1alpha1"]
    kind: Literal["MoorageConfiguration"]
    score_scale: Literal[10, 100, 1000] = DEFAULT_SCORE_SCALE
    profiles: tuple[ConfiguredProfile, ...] = ()


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
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:  # before it is decoded: it may be cut within a character
            raise ConfigurationError(f"{path}:1: larger than {MAX_BYTES} bytes")
        return data.decode()
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
    if (what := what_it_is(value)) and not what.startswith(OURS):
        return [Problem("kind", f"{what}; a {KIND} is expected here")]
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
    if (count := len(configuration.profiles)) > MOST_PROFILES:
        yield Problem("profiles", f"{count} profiles; at most {MOST_PROFILES} are possible")
        return
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


def _plugin_problems(part: ConfiguredProfile | Shadow, path: str) -> Iterator[Problem]:
    for point, entries in part.plugins.by_point.items():
        yield from _enabled_problems(entries, f"{path}.plugins.{point}.enabled")
        yield from _in_tree_problems(entries, point, f"{path}.plugins.{point}")
        if isinstance(part, ConfiguredProfile):  # a shadow starts from what its profile enables
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
