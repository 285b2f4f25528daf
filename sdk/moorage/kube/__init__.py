"""The Kubernetes API as raw bodies; no other package imports the Kubernetes client library."""

from moorage.kube.client import KubeClient
from moorage.kube.config import connect
from moorage.kube.errors import KubeError, KubeStatusError, KubeUnreachableError
from moorage.kube.response import Response, Status, read_status
from moorage.kube.times import micro_time

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
