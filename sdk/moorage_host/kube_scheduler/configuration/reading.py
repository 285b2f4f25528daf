"""Reads a KubeSchedulerConfiguration with the verdict of kube-scheduler, and says all mistakes.

kube-scheduler starts with a file that is read here, and with no other: `tests/host/kube_scheduler`
holds this to what 1.30, 1.36 and 1.37 answered about hundreds of files with one change each.
"""

from pathlib import Path
from typing import Any

import msgspec

from moorage.errors import suggestion
from moorage_host.kube_scheduler.configuration.document import (
    API_VERSION,
    KIND,
    KubeSchedulerConfiguration,
)
from moorage_host.kube_scheduler.configuration.plugins import NEWEST
from moorage_host.kube_scheduler.configuration.validation import configuration_problems
from moorage_host.policy.checks import Problem, find_problems, merged, nulls_as_absent, salvage
from moorage_host.policy.document import read
from moorage_host.policy.kinds import what_it_is
from moorage_host.policy.yaml_lines import read_tree

GROUP = API_VERSION.partition("/")[0]

GONE = {"v1beta1": "1.23", "v1beta2": "1.28", "v1beta3": "1.29"}
"""The first minor version of Kubernetes without a version of the file."""


def load_configuration(path: Path, extender_url: str | None = None) -> KubeSchedulerConfiguration:
    """Read a configuration file; see `parse_configuration`.

    Raises:
        ConfigurationError: The file cannot be read, or kube-scheduler would not start with it: one
            line for each mistake.
    """
    return parse_configuration(read(path), extender_url, source=str(path))


def parse_configuration(
    text: str, extender_url: str | None = None, *, source: str = KIND, minor: int = NEWEST
) -> KubeSchedulerConfiguration:
    """Read a configuration from YAML or JSON.

    Args:
        text: The file.
        extender_url: Replaces every urlPrefix, and TLS if it is plain.
        source: What to call the text in messages.
        minor: The version of kube-scheduler that is to start with it, as 37 for 1.37.

    Raises:
        ConfigurationError: kube-scheduler would not start with it: one line for each mistake.
    """
    tree = read_tree(text, source, as_kubernetes=True)
    tree.refuse(_header_problems(tree.value))
    tree.refuse(merged(tree.problems, find_configuration_problems(tree.value, minor)))
    value = nulls_as_absent(tree.value, KubeSchedulerConfiguration)
    configuration = msgspec.convert(value, KubeSchedulerConfiguration)
    return configuration if extender_url is None else _moved(configuration, extender_url)


def find_configuration_problems(value: Any, minor: int = NEWEST) -> list[Problem]:
    """Return what a minor version of kube-scheduler refuses of a configuration as plain values."""
    given = nulls_as_absent(value, KubeSchedulerConfiguration)
    typed = find_problems(given, KubeSchedulerConfiguration, "")
    configuration = salvage(given, KubeSchedulerConfiguration)
    return merged(typed, configuration_problems(configuration, value, minor))


def _header_problems(value: Any) -> list[Problem]:
    """Return why it is another kind of file: its fields would all be unknown."""
    if not isinstance(value, dict):
        return find_problems(value, KubeSchedulerConfiguration, "")
    version, kind = value.get("apiVersion"), value.get("kind")
    if version == API_VERSION and kind == KIND:
        return []
    if kind == KIND and isinstance(version, str) and version.startswith(f"{GROUP}/"):
        return [Problem("apiVersion", _other_version(version.removeprefix(f"{GROUP}/")))]
    if kind not in (None, "", KIND) and (what := what_it_is(value)):
        return [Problem("kind", f"{what}; a {KIND} is expected here")]
    problems = []
    if version != API_VERSION:
        problems.append(Problem("apiVersion", f"write `apiVersion: {API_VERSION}`"))
    if kind != KIND:
        near = suggestion(kind, [KIND]) if isinstance(kind, str) else ""
        problems.append(Problem("kind", f"write `kind: {KIND}`{near and ', in this casing'}"))
    return problems


def _other_version(version: str) -> str:
    since = f" since Kubernetes {GONE[version]}" if version in GONE else ""
    is_old = version in GONE or version.startswith("v1alpha")
    gone = (
        f"kube-scheduler does not read {version} any more{since}"
        if is_old
        else (f"kube-scheduler knows no {version}")
    )
    also = ", here and in the args of pluginConfig" if is_old else ""
    return f"{gone}: write `apiVersion: {API_VERSION}`{also}; other mistakes are found after that"


def _moved(configuration: KubeSchedulerConfiguration, url: str) -> KubeSchedulerConfiguration:
    is_plain = url.startswith("http:")
    plain = {"enable_https": False, "tls_config": None} if is_plain else {}
    moved = (
        msgspec.structs.replace(extender, url_prefix=url, **plain)
        for extender in configuration.extenders
    )
    return msgspec.structs.replace(configuration, extenders=tuple(moved))
