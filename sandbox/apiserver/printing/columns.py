"""What `kubectl get` shows of each resource, with -o wide or without."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sandbox.apiserver.printing import events, nodes, pods
from sandbox.apiserver.printing.table import Column, from_path
from sandbox.apiserver.resources.resource import Object, PrintedColumn, Resource

NAME = from_path(PrintedColumn(name="Name", path="metadata.name"))
AGE = from_path(PrintedColumn(name="Age", path="metadata.creationTimestamp", type="date"))


def columns_of(resource: Resource) -> Sequence[Column]:
    """Return the columns of a resource, by default the name and the age."""
    if resource.columns:
        dated = any(column.type == "date" for column in resource.columns)
        return (NAME, *map(from_path, resource.columns), *(() if dated else (AGE,)))
    return _COLUMNS.get(resource.stored_as, (NAME, AGE))


def _read(text: str, default: str = "", *, wide: bool = False) -> list[Column]:
    """Make columns of words such as Status=status.phase, or Value=value:integer with a type."""
    columns = []
    for word in text.split():
        name, _, place = word.partition("=")
        path, _, kind = place.partition(":")
        if path in _CELLS:
            columns.append(Column(name=name, cell=_CELLS[path]))
            continue
        title, given = name.replace("_", " "), kind or "string"
        column = PrintedColumn(name=title, path=path, type=given, wide=wide, default=default)
        columns.append(from_path(column))
    return columns


def _between(text: str, default: str = "") -> Sequence[Column]:
    return (NAME, *_read(text, default), AGE)


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


_CELLS = {
    "@ready": _ready_replicas,
    "@claim": _claim,
    "@data": _entries,
    "@ports": _ports,
    "@job": _job_state,
    "@completions": _completions,
}
_COLUMNS: Mapping[str, Sequence[Column]] = {
    "/nodes": (
        NAME,
        *nodes.STATUS,
        AGE,
        *_read("Version=status.nodeInfo.kubeletVersion"),
        *nodes.ADDRESSES,
        *_read(
            "OS-Image=status.nodeInfo.osImage Kernel-Version=status.nodeInfo.kernelVersion "
            "Container-Runtime=status.nodeInfo.containerRuntimeVersion",
            "<unknown>",
            wide=True,
        ),
    ),
    "/pods": (
        NAME,
        *pods.STATUS,
        AGE,
        *_read(
            "IP=status.podIP Node=spec.nodeName Nominated_Node=status.nominatedNodeName",
            "<none>",
            wide=True,
        ),
        pods.READINESS_GATES,
    ),
    "events": (*events.COLUMNS, *_read("Name=metadata.name", wide=True)),
    "scheduling.k8s.io/priorityclasses": (
        NAME,
        *_read("Value=value:integer"),
        *_read("Global-Default=globalDefault:boolean", "false"),
        AGE,
        *_read("PreemptionPolicy=preemptionPolicy"),
    ),
    "apiextensions.k8s.io/customresourcedefinitions": (
        NAME,
        *_read("Created_At=metadata.creationTimestamp"),
    ),
    "/namespaces": _between("Status=status.phase"),
    "/configmaps": _between("Data=@data"),
    "/secrets": _between("Type=type Data=@data"),
    "/services": _between(
        "Type=spec.type Cluster-IP=spec.clusterIP Port(s)=@ports", default="<none>"
    ),
    "coordination.k8s.io/leases": _between("Holder=spec.holderIdentity"),
    "apps/deployments": _between(
        "Ready=@ready Up-to-date=status.updatedReplicas Available=status.availableReplicas", "0"
    ),
    "apps/replicasets": _between(
        "Desired=spec.replicas Current=status.replicas Ready=status.readyReplicas", "0"
    ),
    "apps/statefulsets": _between("Ready=@ready"),
    "apps/daemonsets": _between(
        "Desired=status.desiredNumberScheduled Current=status.currentNumberScheduled "
        "Ready=status.numberReady Up-to-date=status.updatedNumberScheduled "
        "Available=status.numberAvailable",
        "0",
    ),
    "batch/jobs": _between("Status=@job Completions=@completions"),
    "/persistentvolumes": _between(
        "Capacity=spec.capacity.storage Status=status.phase Claim=@claim "
        "StorageClass=spec.storageClassName"
    ),
    "/persistentvolumeclaims": _between(
        "Status=status.phase Volume=spec.volumeName Capacity=status.capacity.storage "
        "StorageClass=spec.storageClassName"
    ),
    "storage.k8s.io/storageclasses": _between("Provisioner=provisioner"),
}
