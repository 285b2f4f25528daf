"""What `kubectl get` shows of each resource, with -o wide or without."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from sandbox.apiserver.printing import events, nodes, pods
from sandbox.apiserver.printing.table import Column, from_path
from sandbox.apiserver.resources.resource import Object, PrintedColumn, Resource

_Columns: TypeAlias = tuple[Column, ...]

NAME = from_path(PrintedColumn(name="Name", path="metadata.name"))
AGE = from_path(PrintedColumn(name="Age", path="metadata.creationTimestamp", type="date"))


def columns_of(resource: Resource) -> Sequence[Column]:
    """Return the columns of a resource, by default the name and the age."""
    if resource.columns:
        return (NAME, *map(from_path, resource.columns), *_age_unless_listed(resource))
    return _COLUMNS.get(resource.stored_as, (NAME, AGE))


def _age_unless_listed(resource: Resource) -> Sequence[Column]:
    return () if any(column.type == "date" for column in resource.columns) else (AGE,)


def _paths(*columns: str, kind: str = "string", wide: bool = False, default: str = "") -> _Columns:
    """Make columns from texts such as "Status status.phase"."""
    parts = (column.rpartition(" ") for column in columns)
    return tuple(
        from_path(PrintedColumn(name=name, path=path, type=kind, wide=wide, default=default))
        for name, _, path in parts
    )


def _between(*columns: Column) -> _Columns:
    return (NAME, *columns, AGE)


def _ready_replicas(obj: Object, _: datetime) -> str:
    wanted = obj.get("spec", {}).get("replicas", 0)
    return f"{obj.get('status', {}).get('readyReplicas', 0)}/{wanted}"


def _completions(job: Object, _: datetime) -> str:
    spec = job.get("spec", {})
    wanted = spec.get("completions", f"1 of {spec.get('parallelism', 1)}")
    return f"{job.get('status', {}).get('succeeded', 0)}/{wanted}"


def _job_state(job: Object, _: datetime) -> str:
    conditions = job.get("status", {}).get("conditions", ())
    if ended := [each["type"] for each in conditions if each.get("status") == "True"]:
        return str(ended[-1])
    return "Suspended" if job.get("spec", {}).get("suspend") else "Running"


def _claim(obj: Object, _: datetime) -> str:
    reference = obj.get("spec", {}).get("claimRef") or {}
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def _entries(obj: Object, _: datetime) -> str:
    return str(sum(len(obj.get(key) or ()) for key in ("data", "binaryData")))


def _ports(service: Object, _: datetime) -> str:
    ports: Any = service.get("spec", {}).get("ports", ())
    return ",".join(f"{p.get('port', '')}/{p.get('protocol', 'TCP')}" for p in ports) or "<none>"


_READY = Column(name="Ready", cell=_ready_replicas)
_DATA = Column(name="Data", cell=_entries)
_COLUMNS: Mapping[str, Sequence[Column]] = {
    "/nodes": (
        NAME,
        *nodes.STATUS,
        AGE,
        *_paths("Version status.nodeInfo.kubeletVersion"),
        *nodes.ADDRESSES,
        *_paths(
            "OS-Image status.nodeInfo.osImage",
            "Kernel-Version status.nodeInfo.kernelVersion",
            "Container-Runtime status.nodeInfo.containerRuntimeVersion",
            wide=True,
            default="<unknown>",
        ),
    ),
    "/pods": (
        NAME,
        *pods.STATUS,
        AGE,
        *_paths(
            "IP status.podIP",
            "Node spec.nodeName",
            "Nominated Node status.nominatedNodeName",
            wide=True,
            default="<none>",
        ),
        pods.READINESS_GATES,
    ),
    "events": (*events.COLUMNS, *_paths("Name metadata.name", wide=True)),
    "/namespaces": _between(*_paths("Status status.phase")),
    "/configmaps": _between(_DATA),
    "/secrets": _between(*_paths("Type type"), _DATA),
    "/services": _between(
        *_paths("Type spec.type", "Cluster-IP spec.clusterIP", default="<none>"),
        Column(name="Port(s)", cell=_ports),
    ),
    "coordination.k8s.io/leases": _between(*_paths("Holder spec.holderIdentity")),
    "scheduling.k8s.io/priorityclasses": (
        NAME,
        *_paths("Value value", kind="integer"),
        *_paths("Global-Default globalDefault", kind="boolean", default="false"),
        AGE,
        *_paths("PreemptionPolicy preemptionPolicy"),
    ),
    "apps/deployments": _between(
        _READY,
        *_paths(
            "Up-to-date status.updatedReplicas", "Available status.availableReplicas", default="0"
        ),
    ),
    "apps/replicasets": _between(
        *_paths(
            "Desired spec.replicas",
            "Current status.replicas",
            "Ready status.readyReplicas",
            default="0",
        )
    ),
    "apps/statefulsets": _between(_READY),
    "apps/daemonsets": _between(
        *_paths(
            "Desired status.desiredNumberScheduled",
            "Current status.currentNumberScheduled",
            "Ready status.numberReady",
            "Up-to-date status.updatedNumberScheduled",
            "Available status.numberAvailable",
            default="0",
        )
    ),
    "batch/jobs": _between(
        Column(name="Status", cell=_job_state), Column(name="Completions", cell=_completions)
    ),
    "/persistentvolumes": _between(
        *_paths("Capacity spec.capacity.storage", "Status status.phase"),
        Column(name="Claim", cell=_claim),
        *_paths("StorageClass spec.storageClassName"),
    ),
    "/persistentvolumeclaims": _between(
        *_paths(
            "Status status.phase",
            "Volume spec.volumeName",
            "Capacity status.capacity.storage",
            "StorageClass spec.storageClassName",
        )
    ),
    "storage.k8s.io/storageclasses": _between(*_paths("Provisioner provisioner")),
    "apiextensions.k8s.io/customresourcedefinitions": (
        NAME,
        *_paths("Created At metadata.creationTimestamp"),
    ),
}
