"""Builds pods and nodes for tests, with just the fields that a test is about."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from moorage.models import (
    Affinity,
    ClaimSource,
    Condition,
    Container,
    ContainerImage,
    ContainerPort,
    Metadata,
    NodeManifest,
    NodeSpec,
    NodeStatus,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    Resources,
    SchedulingGate,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    freeze_node,
    freeze_pod,
)
from moorage.units.quantity import Quantity

DEFAULT_ALLOCATABLE: Final[Mapping[str, Quantity]] = {"cpu": "4", "memory": "16Gi", "pods": "110"}
"""What a node has by default."""

_UIDS: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "moorage.io")
_DELETED: Final = "2026-01-01T00:00:00Z"
_NOTHING: Final[Mapping[str, str]] = {}
_NO_IMAGES: Final[Mapping[str, int]] = {}


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str | None = None,
    labels: Mapping[str, str] = _NOTHING,
    annotations: Mapping[str, str] = _NOTHING,
    owner: OwnerReference | None = None,
    requests: Mapping[str, Quantity] = _NOTHING,
    image: str = "",
    images: Sequence[str] = (),
    host_ports: Sequence[int] = (),
    containers: Sequence[Container] = (),
    init_containers: Sequence[Container] = (),
    overhead: Mapping[str, Quantity] = _NOTHING,
    claims: Sequence[str] = (),
    volumes: Sequence[Volume] = (),
    node: str = "",
    phase: str = "",
    node_selector: Mapping[str, str] = _NOTHING,
    affinity: Affinity | None = None,
    tolerations: Sequence[Toleration] = (),
    topology_spread: Sequence[TopologySpreadConstraint] = (),
    gates: Sequence[str] = (),
    scheduler_name: str = "moorage",
    priority: int = 0,
    terminating: bool = False,
) -> Pod:
    """Make a pod.

    Args:
        name: Its name.
        namespace: Its namespace.
        uid: Its uid; by default one that follows from namespace and name.
        labels: Its labels.
        annotations: Its annotations.
        owner: What created it; make it a controller to have it as `Pod.owner`.
        requests: What its main container requests, such as {"cpu": "500m"}.
        image: The image of its main container.
        host_ports: The ports of the node that its main container takes, by TCP.
        images: The images of further containers, one for each.
        containers: Further containers.
        init_containers: Its init containers and sidecars.
        overhead: What its runtime class adds to its requests.
        claims: The PersistentVolumeClaims that it mounts.
        volumes: Further volumes.
        node: The node that it is bound to; by default it waits for one.
        phase: By default Running on a node, and Pending without.
        node_selector: The labels that it wants of its node.
        affinity: Its affinities.
        tolerations: Its tolerations.
        topology_spread: Its topology spread constraints.
        gates: The names of its scheduling gates.
        scheduler_name: Who schedules it.
        priority: Its priority.
        terminating: Whether it is being deleted.
    """
    main = Container(
        name="main",
        image=image,
        resources=Resources(requests=dict(requests)),
        ports=tuple(ContainerPort(container_port=port, host_port=port) for port in host_ports),
    )
    metadata = Metadata(
        name=name,
        namespace=namespace,
        uid=uid or _uid("pods", namespace, name),
        labels=dict(labels),
        annotations=dict(annotations),
        owner_references=(owner,) if owner else (),
        deletion_timestamp=_DELETED if terminating else "",
    )
    spec = PodSpec(
        node_name=node,
        scheduler_name=scheduler_name,
        priority=priority,
        containers=(main, *_containers(images), *containers),
        init_containers=tuple(init_containers),
        overhead=dict(overhead),
        node_selector=dict(node_selector),
        affinity=affinity,
        tolerations=tuple(tolerations),
        topology_spread_constraints=tuple(topology_spread),
        scheduling_gates=tuple(SchedulingGate(name=gate) for gate in gates),
        volumes=(*map(_mounted, claims), *volumes),
    )
    status = PodStatus(phase=phase or ("Running" if node else "Pending"))
    return freeze_pod(Pod(metadata=metadata, spec=spec, status=status))


def make_node(
    name: str = "node",
    *,
    uid: str | None = None,
    labels: Mapping[str, str] = _NOTHING,
    annotations: Mapping[str, str] = _NOTHING,
    allocatable: Mapping[str, Quantity] = _NOTHING,
    taints: Sequence[Taint] = (),
    unschedulable: bool = False,
    ready: bool = True,
    images: Mapping[str, int] = _NO_IMAGES,
) -> NodeManifest:
    """Make a node.

    Args:
        name: Its name, which is also its label kubernetes.io/hostname.
        uid: Its uid; by default one that follows from its name.
        labels: Its labels.
        annotations: Its annotations.
        allocatable: What pods may use, on top of, or instead of, `DEFAULT_ALLOCATABLE`.
        taints: Its taints.
        unschedulable: Whether it is cordoned.
        ready: Whether its condition Ready is true.
        images: The images that it has, with their sizes in bytes.
    """
    metadata = Metadata(
        name=name,
        uid=uid or _uid("nodes", name),
        labels={"kubernetes.io/hostname": name, **labels},
        annotations=dict(annotations),
    )
    status = NodeStatus(
        allocatable={**DEFAULT_ALLOCATABLE, **allocatable},
        conditions=(Condition(type="Ready", status="True" if ready else "False"),),
        images=tuple(ContainerImage(names=(i,), size_bytes=size) for i, size in images.items()),
    )
    spec = NodeSpec(unschedulable=unschedulable, taints=tuple(taints))
    return freeze_node(NodeManifest(metadata=metadata, spec=spec, status=status))


def _uid(*path: str) -> str:
    return str(uuid.uuid5(_UIDS, "/".join(path)))


def _containers(images: Sequence[str]) -> Iterator[Container]:
    for number, image in enumerate(images, start=1):
        yield Container(name=f"container-{number}", image=image)


def _mounted(claim: str) -> Volume:
    return Volume(name=claim, persistent_volume_claim=ClaimSource(claim_name=claim))
