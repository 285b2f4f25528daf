"""The Kubernetes API as raw bodies; no other package imports the Kubernetes client library."""

from moorage_host.kube.client import KubeClient, connect
from moorage_host.kube.response import (
    UNREADABLE,
    KubeAnswerError,
    KubeError,
    KubeStatusError,
    KubeUnreachableError,
    Response,
    Status,
    micro_time,
    read_status,
)

__all__ = [
    "UNREADABLE",
    "KubeAnswerError",
    "KubeClient",
    "KubeError",
    "KubeStatusError",
    "KubeUnreachableError",
    "Response",
    "Status",
    "connect",
    "micro_time",
    "read_status",
]
