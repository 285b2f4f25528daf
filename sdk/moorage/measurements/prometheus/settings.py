"""The arguments of plugins for where Prometheus is, and how nodes are named there.

Plugins have `PrometheusSettings` as one of their own arguments, so that in a policy it is the same
part for all of them.
"""

from typing import Annotated

from msgspec import Meta

from moorage.measurements.prometheus.layouts import PRESETS, Layout, Preset
from moorage.plugin.arguments import Arguments
from moorage.units.durations import parse_duration

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
        address: The URL up to, without, /api/v1.
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
