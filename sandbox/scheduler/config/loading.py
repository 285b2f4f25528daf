"""Reads and checks a KubeSchedulerConfiguration.

As strict as kube-scheduler: an unknown field or a duplicate key is refused with its path.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from moorage.errors import ConfigurationError
from moorage.units.durations import parse_duration
from sandbox.scheduler.config.document import Configuration, ExtenderConfig


def load_configuration(path: Path, extender_url: str | None = None) -> Configuration:
    """Read a configuration file; `extender_url` replaces every urlPrefix, and TLS if it is plain.

    Raises:
        ConfigurationError: The file cannot be read, or kube-scheduler would not start with it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    try:
        return parse_configuration(text, extender_url)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def parse_configuration(text: str, extender_url: str | None = None) -> Configuration:
    """Read a configuration from YAML; see `load_configuration`."""
    try:
        document = yaml.load(text, _UniqueKeys)  # noqa: S506 - a SafeLoader
        configuration = msgspec.convert(document, Configuration)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise ConfigurationError(f"not a valid KubeSchedulerConfiguration: {error}") from error
    if extender_url is not None:
        is_plain = extender_url.startswith("http:")
        plain = {"enable_https": False, "tls_config": None} if is_plain else {}
        moved = (
            msgspec.structs.replace(extender, url_prefix=extender_url, **plain)
            for extender in configuration.extenders
        )
        configuration = msgspec.structs.replace(configuration, extenders=tuple(moved))
    if problem := next(_problems(configuration), None):
        raise ConfigurationError(problem)
    return configuration


class _UniqueKeys(yaml.SafeLoader):
    """Refuses what YAML silently allows and kube-scheduler does not: a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = Counter(key.value for key, _ in node.value)
        for key, _ in node.value:
            if seen[key.value] > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key.value!r} is given twice", key.start_mark
                )
        return super().construct_mapping(node, deep)


def _problems(configuration: Configuration) -> Iterator[str]:
    if configuration.pod_max_backoff_seconds < configuration.pod_initial_backoff_seconds:
        yield "podMaxBackoffSeconds: must not be below podInitialBackoffSeconds"
    if not configuration.profiles:
        yield "profiles: at least one is required"
    names = Counter(profile.scheduler_name for profile in configuration.profiles)
    for index, profile in enumerate(configuration.profiles):
        if names[profile.scheduler_name] > 1:
            yield f"profiles[{index}].schedulerName: {profile.scheduler_name!r} is given twice"
    yield from _extender_problems(configuration.extenders)


def _extender_problems(extenders: tuple[ExtenderConfig, ...]) -> Iterator[str]:
    managed: Counter[str] = Counter(r.name for e in extenders for r in e.managed_resources)
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield f"{path}.weight: must be positive where prioritizeVerb is set"
        for resource in extender.managed_resources:
            if managed[resource.name] > 1:
                yield f"{path}.managedResources: {resource.name!r} is managed twice"
        try:
            parse_duration(extender.http_timeout)
        except ValueError as error:
            yield f"{path}.httpTimeout: {error}"
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        yield f"extenders: found {binders} with bindVerb, only one extender can implement bind"
