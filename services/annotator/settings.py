"""The settings of the annotator."""

import re
from dataclasses import dataclass
from pathlib import Path

from moorage.errors import ConfigurationError
from moorage.measurements import Preset, PrometheusSettings
from moorage.units.durations import format_duration
from moorage_host.policy.checks import check_arguments
from moorage_host.process.lifecycle import AdminSettings
from moorage_host.settings import setting

PREFIX = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorSettings(AdminSettings):
    """Settings of the annotator."""

    prometheus: str = setting("", "URL of Prometheus without /api/v1; required.")
    preset: Preset = setting("node", "How Prometheus names nodes.")
    node_label: str = setting("", "The label that names the node, instead of a preset's.")
    node_format: str = setting(
        "{name}", "What --node-label holds, with {name}, {hostname} or {internalIP}."
    )
    bearer_token_file: Path | None = setting(None, "A token for Prometheus; read each time.")
    username: str = setting("", "For basic authentication at Prometheus.")
    password_file: Path | None = setting(None, "The password for it; read each time.")
    ca_file: Path | None = setting(
        None, "Certificates to trust for Prometheus instead of the system's, in PEM."
    )
    insecure_skip_verify: bool = setting(False, "Accept any certificate of Prometheus.")
    timeout: float = 10.0
    """Seconds that a query may take; a round without an answer is tried again in the next."""
    window: float = setting(
        900.0,
        "Time over which mean and deviation are taken.",
        unit="seconds",
        minimum=1,
    )
    prefix: str = setting("", "Prefix of the annotations, the plugins' annotationPrefix.")
    threshold: float = 1.0
    """Percent of a node's allocatable amount; values that changed by less are not written, as that
    changes no placement."""
    refresh: float = 300.0
    """Seconds after which a node is written in any case, some at half of it: well below
    the plugins' annotationMaxAge."""
    kubeconfig: Path | None = setting(
        None,
        "How to reach the API server; without it, by the pod's service account, KUBECONFIG or "
        "~/.kube/config.",
    )
    concurrency: int = 8
    """Nodes that are written at the same time: enough for 5,000 nodes in some seconds."""
    request_timeout: float = 10.0
    """Seconds for one request to the API server."""
    interval: float = setting(
        60.0, "From the start of a round to the start of the next.", unit="seconds", minimum=0.1
    )
    once: bool = setting(False, "Run one round, write the result to stdout and end.")
    dry_run: bool = setting(False, "As --once, but write no node.")

    def source(self) -> PrometheusSettings:
        """Return how Prometheus is asked, and how nodes are named there.

        Raises:
            ConfigurationError: A setting is missing, has another form, or two do not go together.
        """
        if not self.prometheus:
            raise ConfigurationError("--prometheus must be given: the URL of Prometheus")
        if not PREFIX.fullmatch(self.prefix):
            raise ConfigurationError(f'--prefix is "{self.prefix}", and not like example.com/')
        given = {
            "address": self.prometheus,
            "bearerTokenFile": str(self.bearer_token_file or ""),
            "username": self.username,
            "passwordFile": str(self.password_file or ""),
            "caFile": str(self.ca_file or ""),
            "insecureSkipVerify": self.insecure_skip_verify,
            "timeout": format_duration(self.timeout),
            "preset": self.preset,
            "nodeLabel": self.node_label,
            "nodeFormat": self.node_format,
        }
        return check_arguments(given, PrometheusSettings, "prometheus")
