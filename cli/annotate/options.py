"""What `moorage annotate` was asked for; see its --help."""

from dataclasses import dataclass
from pathlib import Path

from moorage.measurements import PrometheusSettings
from moorage_host.process.logs import LogFormat, LogLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateOptions:
    """All times are in seconds.

    Attributes:
        prometheus: How to ask, and how nodes are named there.
        window: The time over which mean and deviation are taken.
        prefix: What stands before the names of annotations.
        threshold: The change worth a write, in percent of what the node has allocatable.
        refresh: The age at which annotations are written again although nothing has changed.
        concurrency: How many nodes are written at the same time.
        retries: How often a request is sent again.
        request_timeout: How long one request to the API server may take.
        interval: From the start of one round to that of the next.
        tls: The folder with the admin server's certificate.
        insecure: Whether the admin server may use plain text beyond loopback.
    """

    prometheus: PrometheusSettings
    kubeconfig: Path | None
    window: float
    prefix: str
    threshold: float
    refresh: float
    concurrency: int
    retries: int
    request_timeout: float
    dry_run: bool
    once: bool
    interval: float
    admin_host: str
    admin_port: int
    tls: Path | None
    insecure: bool
    log_level: LogLevel
    log_format: LogFormat
