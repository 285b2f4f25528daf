"""What kube-scheduler refuses in a configuration whose types are right.

The rules are those of three places there: the validation of the file, the framework that builds
each profile, and the clients of extenders. It stops at the first mistake of some kinds; all are
found here. Files that a configuration names are on kube-scheduler's machine: they are not read.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.errors import suggestion
from moorage.units.durations import format_duration, parse_duration
from moorage_host.kube_scheduler.configuration.arguments import (
    NodeResourcesFitArgs,
    PluginArguments,
    arguments_type,
)
from moorage_host.kube_scheduler.configuration.document import (
    API_VERSION,
    MAX_NODE_SCORE,
    ExtenderTLS,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    ProfilePlugins,
    SchedulerPluginSet,
)
from moorage_host.kube_scheduler.configuration.parts import extended_resource_problem
from moorage_host.kube_scheduler.configuration.plugins import (
    GROUP_POINTS,
    IN_TREE,
    SCORES,
    SUCCESSORS,
    known_at,
)
from moorage_host.policy.checks import (
    Problem,
    child,
    find_problems,
    merged,
    nulls_as_absent,
    salvage,
)

FIT = "NodeResourcesFit"

_MOST_TOTAL = 2**63 - 1

_LINE_ENDS = str.maketrans("", "", "\r\n")
"""Go reads base64 in lines."""


def configuration_problems(
    configuration: KubeSchedulerConfiguration, value: Mapping[str, Any], minor: int
) -> Iterator[Problem]:
    """Yield what a minor version of kube-scheduler refuses.

    Args:
        configuration: The file as types.
        value: The same as it was written, which shows what is not given, or null.
        minor: The version, as 37 for 1.37.
    """
    yield from _election_problems(configuration.leader_election, _part(value, "leaderElection"))
    if configuration.pod_max_backoff_seconds < configuration.pod_initial_backoff_seconds:
        yield Problem("podMaxBackoffSeconds", "must not be below podInitialBackoffSeconds")
    profiles = _listed(value, "profiles")
    yield from _name_problems(configuration, profiles)
    yield from _newer_points(profiles, minor)
    for index, profile in enumerate(configuration.profiles):
        yield from _Profile(profile, child("profiles", index), minor).problems()
    yield from _queue_sort_problems(configuration)
    yield from _extender_problems(configuration, _listed(value, "extenders"))


def _part(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _listed(value: Any, key: str) -> list[Any]:
    part = _part(value, key)
    return part if isinstance(part, list) else []


def _newer_points(profiles: list[Any], minor: int) -> Iterator[Problem]:
    for index, profile in enumerate(profiles):
        for point, since in GROUP_POINTS.items():
            plugins = _part(profile, "plugins")
            if minor < since and isinstance(plugins, Mapping) and point in plugins:
                path = f"{child('profiles', index)}.plugins.{point}"
                yield Problem(path, f"kube-scheduler 1.{minor} has no such extension point")


def _name_problems(
    configuration: KubeSchedulerConfiguration, written: list[Any]
) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, profile in enumerate(configuration.profiles):
        where, name = f"{child('profiles', index)}.schedulerName", profile.scheduler_name
        is_given = _part(written[index], "schedulerName") is not None if written else False
        if not name or (len(configuration.profiles) > 1 and not is_given):
            yield Problem(
                where, "must be given, as there are several profiles" if name else "is empty"
            )
        elif name in first:
            yield Problem(where, f'"{name}" is there already, at profiles[{first[name]}]')
        first.setdefault(name, index)


_ELECTION = (("leaseDuration", 15.0), ("renewDeadline", 10.0), ("retryPeriod", 2.0))
"""The durations of an election, with their defaults in seconds."""


def _election_problems(election: LeaderElection, written: Any) -> Iterator[Problem]:
    texts = (election.lease_duration, election.renew_deadline, election.retry_period)
    seconds: dict[str, float] = {}
    for (name, default), text in zip(_ELECTION, texts, strict=True):
        path = f"leaderElection.{name}"
        if message := _duration_problem(text, written, name):
            yield Problem(path, message)
            continue
        seconds[name] = parse_duration(text) or default
        if election.leader_elect and seconds[name] < 0:
            yield Problem(path, f"must be positive, got {text}")
    if not election.leader_elect:
        return
    lease, deadline = seconds.get("leaseDuration"), seconds.get("renewDeadline")
    if lease is not None and deadline is not None and 0 < lease <= deadline:
        message = f"must be above renewDeadline, which is {format_duration(deadline)}"
        yield Problem("leaderElection.leaseDuration", message)
    if (lock := election.resource_lock) not in ("", "leases"):
        yield Problem("leaderElection.resourceLock", f'must be "leases", got "{lock}"')


def _duration_problem(text: str, written: Any, name: str) -> str:
    """Return why a field is no duration; "" if it is one."""
    if isinstance(written, Mapping) and name in written and written[name] is None:
        return "a duration must not be null: leave it out"
    try:
        parse_duration(text)
    except ValueError as error:
        return str(error)
    return ""


class _Profile:
    """Checks a profile as kube-scheduler's framework builds it."""

    def __init__(self, profile: KubeSchedulerProfile, path: str, minor: int) -> None:
        self._profile = profile
        self._plugins = profile.plugins
        self._path = path
        self._minor = minor
        self._multi_point = [
            entry
            for entry in profile.plugins.everywhere
            if entry.name not in IN_TREE or IN_TREE[entry.name].is_in(minor)
        ]

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the profile."""
        for point, entries in self._plugins.by_point.items():
            path = f"{self._path}.plugins.{point}"
            if self._minor >= GROUP_POINTS.get(point, 0):
                yield from self._point_problems(point, entries, path)
        yield from self._multi_point_problems()
        yield from self._count_problems()
        yield from self._weight_problems()
        yield from self._argument_problems()

    def _point_problems(
        self, point: str, entries: SchedulerPluginSet, path: str
    ) -> Iterator[Problem]:
        seen = set[str]()
        for index, plugin in enumerate(entries.enabled):
            where = f"{child(f'{path}.enabled', index)}.name"
            if message := self._unknown(plugin.name, point):
                yield Problem(where, message)
            elif plugin.name in seen:
                yield Problem(where, f"`{plugin.name}` is enabled already")
            seen.add(plugin.name)

    def _unknown(self, name: str, point: str) -> str:
        """Return why a plugin cannot run at a point; "" if it can."""
        plugin = IN_TREE.get(name)
        if plugin is not None and plugin.is_in(self._minor):
            if point == "multiPoint" or plugin.runs_at(point, self._minor):
                return ""
            points = ", ".join(sorted(p for p in plugin.points if plugin.runs_at(p, self._minor)))
            return f"`{name}` does not run at {point}, only at {points}"
        if name in SUCCESSORS:
            return f"unknown plugin `{name}`: {SUCCESSORS[name]}"
        if plugin is not None:
            return f"unknown plugin `{name}`: kube-scheduler 1.{self._minor} does not have it"
        if name == "*":
            return "`*` may only be disabled; enable plugins by their names"
        near = suggestion(name, known_at(point, self._minor))
        return f"unknown plugin `{name}`{near or ': kube-scheduler has none of this name'}"

    def _multi_point_problems(self) -> Iterator[Problem]:
        path = f"{self._path}.plugins.multiPoint.enabled"
        enabled = self._plugins.multi_point.enabled
        expanded: dict[str, bool] = {}
        for index, plugin in enumerate(enabled):
            where = f"{child(path, index)}.name"
            if message := self._unknown(plugin.name, "multiPoint"):
                yield Problem(where, message)
            if plugin.name not in expanded:
                expanded[plugin.name] = self._is_expanded(plugin.name)
            elif expanded[plugin.name]:
                yield Problem(where, f"`{plugin.name}` is enabled already")

    def _is_expanded(self, name: str) -> bool:
        """Return whether a plugin of multiPoint runs at any point because it is there."""
        plugin = IN_TREE.get(name)
        return plugin is not None and any(
            plugin.runs_at(point, self._minor)
            and not {"*", name} & {each.name for each in entries.disabled}
            and name not in {each.name for each in entries.enabled}
            for point, entries in self._plugins.by_point.items()
        )

    def _count_problems(self) -> Iterator[Problem]:
        """Yield that pods could not be sorted or bound."""
        path = f"{self._path}.plugins"
        own = self._plugins.queue_sort.enabled
        if len(own) > 1:
            yield Problem(f"{path}.queueSort.enabled", "only one plugin may be enabled")
        elif not self._plugins.at("queueSort"):
            yield Problem(f"{path}.queueSort", "must have a plugin: enable PrioritySort")
        if not self._plugins.at("bind"):
            yield Problem(f"{path}.bind", "must have a plugin: enable DefaultBinder")

    def _weight_problems(self) -> Iterator[Problem]:
        """Yield sums that Go's 64 bits do not hold; a negative weight makes the next one such."""
        for point in SCORES:
            own = self._plugins.by_point[point].entries.enabled
            weights: dict[str, int] = {}
            total = 0
            for entry in (*own, *self._multi_point):
                plugin = IN_TREE.get(entry.name)
                if entry.name in weights or not (plugin and plugin.runs_at(point, self._minor)):
                    continue
                weights[entry.name] = weight = entry.weight or 1
                room = (_MOST_TOTAL - total + 2**63) % 2**64 - 2**63
                if weight * MAX_NODE_SCORE > room:
                    wrong = min(weights, key=lambda name: weights[name])
                    yield Problem(*self._weight_of(wrong, point))
                    break
                total += weight * MAX_NODE_SCORE

    def _weight_of(self, name: str, point: str) -> tuple[str, str]:
        for place in (point, "multiPoint"):
            sets = {**self._plugins.by_point, "multiPoint": self._plugins.multi_point}
            for index, plugin in enumerate(sets[place].enabled):
                if plugin.name == name:
                    path = f"{child(f'{self._path}.plugins.{place}.enabled', index)}.weight"
                    return path, f"must not be negative, got {plugin.weight}"
        return self._path, f"the weights of {point} are too large"

    def _argument_problems(self) -> Iterator[Problem]:
        first: dict[str, int] = {}
        for index, entry in enumerate(self._profile.plugin_config):
            path = child(f"{self._path}.pluginConfig", index)
            if entry.name in first:
                yield Problem(f"{path}.name", f"`{entry.name}` is there already")
            first.setdefault(entry.name, index)
            plugin = IN_TREE.get(entry.name)
            if plugin is not None and not plugin.is_in(self._minor) and plugin.until is not None:
                yield Problem(f"{path}.name", f"`{entry.name}`: {SUCCESSORS[entry.name]}")
            kind = arguments_type(entry.name, self._minor)
            if kind is not None and entry.args is not None:
                yield from self._arguments(entry.name, entry.args, kind, f"{path}.args")

    def _arguments(
        self, name: str, written: Any, kind: type[PluginArguments], path: str
    ) -> Iterator[Problem]:
        given = nulls_as_absent(written, kind)
        typed = find_problems(given, kind, path)
        args = salvage(given, kind)
        head = list(_head_problems(args, name, path))
        runs = kind is not NodeResourcesFitArgs or self._is_needed(FIT)
        yield from merged(head, typed, args.problems(path, self._minor) if runs else ())

    def _is_needed(self, name: str) -> bool:
        return name in needed(self._plugins)


def needed(plugins: ProfilePlugins) -> frozenset[str]:
    """Return the plugins that a profile builds, wherever they run."""
    sets = (each.enabled for each in plugins.by_point.values())
    return frozenset(
        [entry.name for entry in plugins.everywhere]
        + [plugin.name for enabled in sets for plugin in enabled]
    )


def _head_problems(args: PluginArguments, name: str, path: str) -> Iterator[Problem]:
    if args.api_version not in ("", API_VERSION):
        message = f'expected "{API_VERSION}", or nothing, got "{args.api_version}"'
        yield Problem(f"{path}.apiVersion", message)
    if args.kind not in ("", f"{name}Args"):
        yield Problem(f"{path}.kind", f'expected "{name}Args", or nothing, got "{args.kind}"')


def _queue_sort_problems(configuration: KubeSchedulerConfiguration) -> Iterator[Problem]:
    """Yield profiles that sort pods otherwise than the first: there is one queue."""
    first, *others = configuration.profiles
    for index, profile in enumerate(others, 1):
        if profile.plugins.queue_sort != first.plugins.queue_sort:
            path = f"{child('profiles', index)}.plugins.queueSort"
            yield Problem(path, "must be the same in all profiles")


def _extender_problems(
    configuration: KubeSchedulerConfiguration, written: list[Any]
) -> Iterator[Problem]:
    managed = set[str]()
    binding = [
        index for index, extender in enumerate(configuration.extenders) if extender.bind_verb
    ]
    for index, extender in enumerate(configuration.extenders):
        path = child("extenders", index)
        if extender.prioritize_verb and extender.weight <= 0:
            message = f"must be positive where prioritizeVerb is set, got {extender.weight}"
            yield Problem(f"{path}.weight", message)
        if message := _duration_problem(extender.http_timeout, written[index], "httpTimeout"):
            yield Problem(f"{path}.httpTimeout", message)
        if extender.tls_config is not None:
            yield from _tls_problems(extender.tls_config, f"{path}.tlsConfig")
        for number, resource in enumerate(extender.managed_resources):
            where = f"{child(f'{path}.managedResources', number)}.name"
            if problem := extended_resource_problem(resource.name):
                yield Problem(where, problem)
            elif resource.name in managed:
                yield Problem(where, f'"{resource.name}" is managed by an extender already')
            managed.add(resource.name)
    for index in binding[1:]:
        message = f"only one extender can bind, and extenders[{binding[0]}] does"
        yield Problem(f"{child('extenders', index)}.bindVerb", message)
    yield from _ignored_problems(configuration)


def _tls_problems(tls: ExtenderTLS, path: str) -> Iterator[Problem]:
    if tls.insecure and (tls.ca_file or tls.ca_data):
        yield Problem(f"{path}.insecure", "must not be true where an authority is given")
    is_pair = bool(tls.cert_data and tls.key_data)
    given = (
        ("caData", tls.ca_data, True),
        ("certData", tls.cert_data, is_pair),
        ("keyData", tls.key_data, is_pair),
    )
    for name, data, is_used in given:
        try:
            pem = base64.b64decode(data.translate(_LINE_ENDS), validate=True)
        except ValueError:
            yield Problem(f"{path}.{name}", "must be in base64")
            continue
        if data and is_used and b"-----BEGIN " not in pem:
            yield Problem(f"{path}.{name}", "must be PEM in base64")


def _ignored_problems(configuration: KubeSchedulerConfiguration) -> Iterator[Problem]:
    """Yield that nobody counts resources: kube-scheduler writes them into arguments of FIT."""
    if not configuration.ignored_resources:
        return
    for index, profile in enumerate(configuration.profiles):
        is_given = any(entry.name == FIT for entry in profile.plugin_config)
        if not is_given and FIT not in needed(profile.plugins):
            yield Problem(
                child("profiles", index),
                f"must run {FIT}, or have pluginConfig for it, where an extender has a managed "
                "resource with ignoredByScheduler",
            )
