"""Builds the small but mean clusters of which kube-scheduler's numbers are recorded.

`clusters_*.py` hold the clusters; oracle.py records the answers of kube-scheduler about them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.planes.embedded import Object

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SHORT = {"gpu": "example.com/gpu", "disk": "ephemeral-storage"}
"""Names of resources, shortened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Nodes, and what stands on them.

    Attributes:
        name: What it is about.
        nodes: In the order in which their objects are created.
        bound: Pods that have their nodes.
        others: Objects of other kinds, created before all else and left behind in the end.
        profiles: Those whose scores are recorded, of profiles.SCORE_PROFILES.
        scored: Pods whose scores are recorded.
        filtered: Pods whose rejections are recorded, by the filter plugin that they are about.
    """

    name: str
    nodes: Sequence[Object]
    bound: Sequence[Object] = ()
    others: Sequence[Object] = ()
    profiles: Sequence[str]
    scored: Sequence[Object]
    filtered: Mapping[str, Sequence[Object]]


def node(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    taints: Sequence[Object] = (),
    images: Mapping[str, int] | None = None,
    unschedulable: bool = False,
    **allocatable: str,
) -> Object:
    """Build a node; an underscore in the name of a resource is a dash."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"} | _resources(allocatable)
    listed = [{"names": n.split(), "sizeBytes": size} for n, size in (images or {}).items()]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {"allocatable": amounts, "capacity": amounts, "images": listed},
    }


def taint(key: str, effect: str, value: str = "") -> Object:
    """Build a taint."""
    return {"key": key, "effect": effect, "value": value}


def pod(
    name: str,
    *containers: Object,
    on: str = "",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    owner: str = "",
    terminating: bool = False,
    **spec: Any,
) -> Object:
    """Build a pod; *owner* is KIND/NAME of its controller."""
    metadata: Object = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    if owner:
        kind, _, of = owner.partition("/")
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": of, "uid": of}
        metadata["ownerReferences"] = [reference | {"controller": True}]
    if terminating:
        metadata["finalizers"] = ["example.com/stay"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": list(containers) or [container()],
            **({"nodeName": on} if on else {}),
            **spec,
        },
    }


def container(
    name: str = "main",
    image: str = "app:1",
    *,
    limits: Mapping[str, str] | None = None,
    always: bool = False,
    ports: Sequence[Object] = (),
    **requests: str,
) -> Object:
    """Build a container with requests; *always* makes an init container a sidecar."""
    resources: Object = {"requests": _resources(requests)}
    if limits:
        resources["limits"] = _resources(limits)
    built: Object = {"name": name, "image": image, "resources": resources, "ports": list(ports)}
    return built | ({"restartPolicy": "Always"} if always else {})


def expression(key: str, operator: str, *values: str) -> Object:
    """Build a requirement of a selector."""
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def selector(**labels: str) -> Object:
    """Build a label selector."""
    return {"matchLabels": labels}


def _resources(amounts: Mapping[str, str]) -> dict[str, str]:
    return {SHORT.get(name, name.replace("_", "-")): amount for name, amount in amounts.items()}
