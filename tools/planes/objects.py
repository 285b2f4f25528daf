"""Objects that scenarios create."""

import json
from typing import Any

from tools.planes.embedded import Object

NAMESPACE = "default"
NO_CLAIMS = "no new claims to deallocate, "
"""What kube-scheduler up to 1.36 says about a pod without resource claims."""


def node(name: str, cpu: str = "8", **metadata: Any) -> Object:
    """Build a node that has room."""
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, **metadata},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(
    name: str,
    profile: str = "steered",
    cpu: str = "10m",
    *,
    labels: dict[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
    spec: Object | None = None,
    **steps: Any,
) -> Object:
    """Build a pod; *steps* are what the plugin Steered shall do, such as reject={"n1": "full"}."""
    told = {f"steered/{key}": _text(value) for key, value in steps.items()}
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    metadata: Object = {"name": name, "namespace": NAMESPACE, "annotations": told}
    metadata |= {"labels": labels or {}, "finalizers": list(finalizers)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        # Nobody plays the kubelet: with a grace period a deleted pod would stay for ever.
        "spec": {
            "schedulerName": profile,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **(spec or {}),
        },
    }


def binding(name: str, node_name: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "target": {"kind": "Node", "name": node_name},
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
