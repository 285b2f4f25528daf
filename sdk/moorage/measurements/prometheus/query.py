"""Settings of plugins for Prometheus, how installations name nodes, and the query for all nodes.

Plugins have `PrometheusSettings` as one of their own arguments, so that in a policy it is the same
part for all of them. They declare `Measure`s without knowing how an installation names nodes; the
layout adds that.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from msgspec import Meta

from moorage.models import NodeManifest
from moorage.plugin.arguments import Arguments
from moorage.units.durations import format_duration, parse_duration

Preset = Literal[
    "node", "kubernetes-node", "node-uname-info", "kube-pod-info", "instance-name", "instance-ip"
]
"""The name of a layout."""

_PORT = re.compile(r":[0-9]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which label of a series names its node, and in which form.

    Attributes:
        label: The label.
        format: What it holds, with {name}, {hostname} or {internalIP} of the node. A port at the
            end of the label counts only if the format has one.
        join: PromQL that gives series the label if they do not have it themselves.
    """

    label: str
    format: str = "{name}"
    join: str = ""

    def check(self) -> None:
        """Refuse a format that does not distinguish nodes.

        Raises:
            ValueError: It names no property of the node, or one that does not exist.
        """
        try:
            constant = self._filled("a", "a", "a") == self._filled("b", "b", "b")
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise ValueError(f'nodeFormat "{self.format}" {_FORMAT_HELP}') from error
        if constant:
            raise ValueError(f'nodeFormat "{self.format}" {_FORMAT_HELP}')

    def key_of_node(self, node: NodeManifest) -> str | None:
        """Return what series of *node* have in the label; None if that cannot be known."""
        addresses = {a.type: a.address for a in reversed(node.status.addresses)}
        ip = addresses.get("InternalIP", "")
        if not ip and "{internalIP}" in self.format:
            return None
        hostname = addresses.get("Hostname") or node.name
        return self._filled(node.name, hostname, ip)

    def key_of(self, labels: Mapping[str, str]) -> str:
        """Return the node that *labels* name, in the form of `key_of_node`; empty if none."""
        value = labels.get(self.label, "")
        if not _PORT.search(self.format):
            value = _without_port(value)
        if self.label == "instance" and _is_address(value) != ("{internalIP}" in self.format):
            return ""
        return value

    def _filled(self, name: str, hostname: str, ip: str) -> str:
        return self.format.format(name=name, hostname=hostname, internalIP=ip)


_FORMAT_HELP = "must contain {name}, {hostname} or {internalIP}, and no other braces"

PRESETS: Mapping[Preset, Layout] = {
    "node": Layout(label="node"),
    "kubernetes-node": Layout(label="kubernetes_node"),
    "node-uname-info": Layout(
        label="nodename",
        format="{hostname}",
        join="* on (instance) group_left (nodename) max by (instance, nodename) (node_uname_info)",
    ),
    "kube-pod-info": Layout(
        label="node",
        join="* on (namespace, pod) group_left (node) "
        'max by (namespace, pod, node) (kube_pod_info{node!=""})',
    ),
    "instance-name": Layout(label="instance"),
    "instance-ip": Layout(label="instance", format="{internalIP}"),
}
"""The layouts by name."""


def _without_port(value: str) -> str:
    if value.count(":") > 1 and not value.startswith("["):  # IPv6 without a port
        return value
    return _PORT.sub("", value).strip("[]")


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


Duration = Annotated[
    str,
    Meta(
        pattern=r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$",
        title='a duration such as "500ms", "5s" or "1m30s"',
    ),
]
"""A positive time as people write it; `parse_duration` makes seconds of it."""

Address = Annotated[
    str,
    Meta(
        pattern=r"^(https?://[^/@?#\s]+(/[^?#\s]*)?)?$",
        title="an address without credentials such as http://prometheus.monitoring:9090",
    ),
]
"""The address of a server, without credentials, query or fragment."""

LabelName = Annotated[
    str, Meta(pattern=r"^([a-zA-Z_][a-zA-Z0-9_]*)?$", title="the name of a Prometheus label")
]


class PrometheusSettings(Arguments):
    """Where Prometheus is, how to get in, how often to ask, and how it names nodes.

    Attributes:
        address: The URL without /api/v1.
        bearer_token_file: A file with a token; read again for each query.
        username: For basic authentication.
        password_file: A file with the password; read again for each query.
        ca_file: The certificates to trust instead of the system's, in PEM; read for each query.
        insecure_skip_verify: Accept any certificate.
        interval: How long to wait from one query to the next.
        timeout: How long a query may take.
        max_age: How old an answer may be before nodes count as not measured.
        max_answer_bytes: The longest answer that is read.
        preset: How the installation names nodes.
        node_label: The label that names the node, instead of a preset's.
        node_format: What that label holds, with {name}, {hostname} or {internalIP}.
    """

    address: Address = ""
    bearer_token_file: str = ""
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    insecure_skip_verify: bool = False
    interval: Duration = "30s"
    timeout: Duration = "10s"
    max_age: Duration = "2m"
    max_answer_bytes: Annotated[int, Meta(ge=1024)] = 32 * 1024 * 1024
    preset: Preset = "node"
    node_label: LabelName = ""
    node_format: str = "{name}"

    def __post_init__(self) -> None:
        for name in ("interval", "timeout", "max_age"):
            positive(getattr(self, name))
        if self.username and self.bearer_token_file:
            raise ValueError("username and bearerTokenFile exclude each other")
        if bool(self.username) != bool(self.password_file):
            raise ValueError("username and passwordFile need each other")
        if self.max_age_seconds < self.interval_seconds:
            raise ValueError("maxAge must not be shorter than interval")
        self.layout.check()

    @property
    def interval_seconds(self) -> float:
        """The interval in seconds."""
        return parse_duration(self.interval)

    @property
    def timeout_seconds(self) -> float:
        """The timeout in seconds."""
        return parse_duration(self.timeout)

    @property
    def max_age_seconds(self) -> float:
        """The age limit in seconds."""
        return parse_duration(self.max_age)

    @property
    def layout(self) -> Layout:
        """How nodes are named: the preset's way, or the one given by label and format."""
        if self.node_label:
            return Layout(label=self.node_label, format=self.node_format)
        return PRESETS[self.preset]


def positive(duration: str) -> str:
    """Return *duration* if it is longer than nothing.

    Raises:
        ValueError: It is not, or it is no duration.
    """
    if parse_duration(duration) <= 0:
        raise ValueError(f'a duration must be longer than "{duration}"')
    return duration


MEASURE_LABEL: Final = "moorage_measure"
"""Distinguishes the measures of one answer."""

LATE: Final = 300.0
"""After how many seconds without a reading a counter has no rate any more: Prometheus' own limit
for looking back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number for each node.

    Attributes:
        series: PromQL of series of nodes, such as rates by device, with all labels that they have.
        aggregate: How several series of a node become one.
        distinct: The labels by which the series of a node differ. Series that agree in them are
            the same thing measured twice, as by a pair of servers: the largest counts.
        form: What to make of the node's number, with {} in its place.
    """

    series: str
    aggregate: Literal["sum", "avg", "max"] = "avg"
    distinct: tuple[str, ...] = ()
    form: str = "{}"

    def text(self, layout: Layout) -> str:
        """Return the query."""
        joined = f"({self.series}) {layout.join}".rstrip()
        if self.distinct:
            joined = f"max by ({', '.join((layout.label, *self.distinct))}) ({joined})"
        return self.form.replace("{}", f"{self.aggregate} by ({layout.label}) ({joined})")


def query_text(measures: Mapping[str, Measure], layout: Layout) -> str:
    """Return one query for all *measures*, whose names come back in `MEASURE_LABEL`."""
    parts = (
        f'label_replace({measure.text(layout)}, "{MEASURE_LABEL}", "{name}", "__name__", "")'
        for name, measure in measures.items()
    )
    return " or ".join(parts)


def rate(counters: str, seconds: float) -> str:
    """Return PromQL of the rates of *counters* over so many seconds.

    Those without a recent reading have none, however long the time.
    """
    text = f"rate({counters}[{time_range(seconds)}])"
    if seconds <= LATE:
        return text
    return f"({text} and last_over_time({counters}[{time_range(LATE)}]))"


def time_range(seconds: float) -> str:
    """Return a time as PromQL has it, which knows no fractions: in whole seconds, at least one."""
    return format_duration(max(round(seconds), 1))


def quoted(text: str) -> str:
    """Return *text* as a string of PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
