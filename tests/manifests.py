"""Objects as the API server sends them; models come from `moorage.testing`."""

from collections.abc import Sequence
from typing import Any

Object = dict[str, Any]


def node(
    name: str,
    *,
    cpu: str = "4",
    pods: str = "110",
    taint: str = "",
    images: Sequence[str] = (),
    **labels: str,
) -> Object:
    """Build a node that has room."""
    held = [{"names": [image], "sizeBytes": 50_000_000} for image in images]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}] if taint else []},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods}, "images": held},
    }


def pod(name: str = "p", *, cpu: str = "", labels: Object | None = None, **spec: Any) -> Object:
    """Build a pod that waits for the profile of most tests."""
    container: Object = {"name": "c", "image": "app:1"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"schedulerName": "moorage", "containers": [container], **spec},
    }
