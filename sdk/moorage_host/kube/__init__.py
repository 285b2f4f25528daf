"""The Kubernetes API as raw bodies; no other package imports the Kubernetes client library."""

from moorage_host.kube.client import KubeClient
from moorage_host.kube.config import connect
from moorage_host.kube.errors import KubeError, KubeStatusError, KubeUnreachableError
from moorage_host.kube.response import Response, Status, read_status
from moorage_host.kube.times import micro_time

__all__ = [
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
