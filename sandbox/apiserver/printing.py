"""What clients are answered with: whole objects, or the Table of `kubectl get`."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.resources.resource import Column, Object, Resource, value_at
from sandbox.apiserver.store.store import Change, Item, encode

_ROLE = "node-role.kubernetes.io/"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 365 * 86_400}
_STEPS: Sequence[tuple[float, str, str]] = (
    (120, "s", ""), (600, "m", "s"), (3 * 3600, "m", ""), (8 * 3600, "h", "m"),
    (48 * 3600, "h", ""), (8 * 86_400, "d", "h"), (2 * _UNITS["y"], "d", ""),
    (8 * _UNITS["y"], "y", "d"), (math.inf, "y", ""),
)  # fmt: skip
"""Up to how many seconds a duration is written in which units."""

_BUILT_IN: Final[Mapping[str, str]] = {
    "/nodes": "Status=@node_state Roles=@roles Age Version=status.nodeInfo.kubeletVersion"
    " *Internal-IP=@internal_ip *External-IP=@external_ip"
    " *OS-Image=status.nodeInfo.osImage?<unknown>"
    " *Kernel-Version=status.nodeInfo.kernelVersion?<unknown>"
    " *Container-Runtime=status.nodeInfo.containerRuntimeVersion?<unknown>",
    "/pods": "Ready=@ready_containers Status=@pod_state Restarts=@restarts Age"
    " *IP=status.podIP?<none> *Node=spec.nodeName?<none>"
    " *Nominated_Node=status.nominatedNodeName?<none>",
    "events": "Last_Seen=@last_seen Type=type Reason=reason Object=@object"
    " *Source=@source Message=@message *Count=@count *Name=metadata.name",
    "/namespaces": "Status=status.phase Age",
    "/configmaps": "Data=@entries Age",
    "/secrets": "Type=type Data=@entries Age",
    "/services": "Type=spec.type Cluster-IP=spec.clusterIP?<none> Port(s)=@ports Age",
    "/persistentvolumes": "Capacity=spec.capacity.storage Status=status.phase Claim=@claim"
    " StorageClass=spec.storageClassName Age",
    "/persistentvolumeclaims": "Status=status.phase Volume=spec.volumeName"
    " Capacity=status.capacity.storage StorageClass=spec.storageClassName Age",
    "apiextensions.k8s.io/customresourcedefinitions": "Created_At=metadata.creationTimestamp",
    "apps/deployments": "Ready=@ready_replicas Up-to-date=status.updatedReplicas?0"
    " Available=status.availableReplicas?0 Age",
    "apps/replicasets": "Desired=spec.replicas?0 Current=status.replicas?0"
    " Ready=status.readyReplicas?0 Age",
    "apps/statefulsets": "Ready=@ready_replicas Age",
    "batch/jobs": "Status=@job_state Completions=@completions Age",
    "coordination.k8s.io/leases": "Holder=spec.holderIdentity Age",
    "scheduling.k8s.io/priorityclasses": "Value=value Global-Default=globalDefault?false Age"
    " PreemptionPolicy=preemptionPolicy",
    "storage.k8s.io/storageclasses": "Provisioner=provisioner Age",
}
"""Columns after the name: TITLE=PATH?DEFAULT, or TITLE=@CELL; with a star only with -o wide."""


def table(resource: Resource, objects: Iterable[Object], include: str, metadata: Object) -> Object:
    """Return a Table; `include` is Metadata, Object or None: how much of an object each row has."""
    columns, now = resource.columns or _built_in(resource.stored_as), datetime.now(UTC)

    def row(obj: Object) -> Object:
        cells: Object = {"cells": [column.cell(obj, now) for column in columns]}
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        partial["metadata"] = obj["metadata"]
        shown = {"Object": obj, "None": None}.get(include, partial)
        return cells | ({"object": shown} if shown else {})

    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [row(obj) for obj in objects],
    }


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.name == "Name" and not column.wide else "",
        "description": column.name,
        "priority": 1 if column.wide else 0,
    }


@cache
def _built_in(storage: str) -> tuple[Column, ...]:
    columns = tuple(map(_read, _BUILT_IN.get(storage, "Age").split()))
    return columns if storage == "events" else (_NAME, *columns)


def _read(word: str) -> Column:
    if word == "Age":
        return _AGE
    title, _, place = word.removeprefix("*").partition("=")
    name, wide = title.replace("_", " "), word.startswith("*")
    if place.startswith("@"):
        return Column(name=name, cell=_CELLS[place[1:]], wide=wide)
    path, _, default = place.partition("?")
    return _field(name, path, wide=wide, default=default)


def _field(
    name: str, path: str, kind: str = "string", *, wide: bool = False, default: str = ""
) -> Column:
    """Return a column that shows the field at a path, or the age of it if it is a date."""

    def cell(obj: Object, now: datetime) -> Any:
        value = value_at(obj, path)
        if kind == "date":
            return age(value if isinstance(value, str) else None, now)
        return default if value in (None, "") else value

    return Column(name=name, cell=cell, type="string" if kind == "date" else kind, wide=wide)


_NAME = _field("Name", "metadata.name")
_AGE = _field("Age", "metadata.creationTimestamp", "date")


def columns_of(given: Sequence[Object]) -> tuple[Column, ...]:
    """Return the columns that a custom resource definition asks for; none if it names none."""
    shown = (
        _field(
            each["name"],
            each["jsonPath"].removeprefix("."),
            each["type"],
            wide=each.get("priority", 0) > 0,
        )
        for each in given
    )
    dated = any(each["type"] == "date" for each in given)
    return (_NAME, *shown, *(() if dated else (_AGE,))) if given else ()


def age(text: str | None, present: datetime) -> str:
    """Return how long ago a timestamp was, in kubectl's short form; <unknown> without one."""
    if not text:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return "<invalid>"
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return short(int((present - then).total_seconds()))


def short(seconds: int) -> str:
    """Write a duration in one or two units, coarser as it grows: 95s, 5m30s, 3h5m, 4d, 2y10d."""
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    _, big, small = next(step for step in _STEPS if seconds < step[0])
    rest = seconds % _UNITS[big] // _UNITS[small] if small else 0
    return f"{seconds // _UNITS[big]}{big}" + (f"{rest}{small}" if rest else "")


def pod_state(pod: Object) -> str:
    """Return the word under STATUS."""
    status = pod.get("status", {})
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    states = (each.get("state", {}) for each in status.get("containerStatuses", ()))
    reasons = [
        state.get(k, {}).get("reason") for state in states for k in ("waiting", "terminated")
    ]
    if trouble := next(filter(None, reasons), ""):
        return str(trouble)
    if _conditions(pod, "reason").get("PodScheduled") == "SchedulingGated":
        return "SchedulingGated"
    return str(status.get("reason") or status.get("phase", ""))


def _conditions(obj: Object, key: str = "status") -> dict[str, Any]:
    return {c.get("type"): c.get(key) for c in obj.get("status", {}).get("conditions", ())}


def _ready_containers(pod: Object) -> str:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    ready = sum(bool(status.get("ready")) for status in statuses)
    return f"{ready}/{len(pod['spec'].get('containers', ()))}"


def _restarts(pod: Object) -> str:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    return str(sum(int(status.get("restartCount", 0)) for status in statuses))


def _node_state(node: Object) -> str:
    ready = {"True": "Ready", None: "Unknown"}.get(_conditions(node).get("Ready"), "NotReady")
    return f"{ready},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else ready


def _roles(node: Object) -> str:
    labels = node["metadata"].get("labels", {})
    roles = sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE))
    return ",".join(filter(None, roles)) or "<none>"


def _address(node: Object, kind: str) -> str:
    addresses = node.get("status", {}).get("addresses", ())
    return next((a.get("address", "") for a in addresses if a.get("type") == kind), "<none>")


def _about(event: Object) -> str:
    about = event.get("involvedObject", {})
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _source(event: Object) -> str:
    component = event.get("source", {}).get("component")
    return str(component or event.get("reportingComponent", ""))


def _last_seen(event: Object, now: datetime) -> str:
    series = event.get("series", {}).get("lastObservedTime")
    return age(series or event.get("lastTimestamp") or event.get("eventTime"), now)


def _ready_replicas(obj: Object) -> str:
    ready = obj.get("status", {}).get("readyReplicas", 0)
    return f"{ready}/{obj.get('spec', {}).get('replicas', 0)}"


def _completions(job: Object) -> str:
    spec = job.get("spec", {})
    wanted = spec.get("completions", f"1 of {spec.get('parallelism', 1)}")
    return f"{job.get('status', {}).get('succeeded', 0)}/{wanted}"


def _job_state(job: Object) -> str:
    if ended := [kind for kind, status in _conditions(job).items() if status == "True"]:
        return str(ended[-1])
    return "Suspended" if job.get("spec", {}).get("suspend") else "Running"


def _claim(volume: Object) -> str:
    reference = volume.get("spec", {}).get("claimRef") or {}
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def _ports(service: Object) -> str:
    ports: Any = service.get("spec", {}).get("ports", ())
    return ",".join(f"{p.get('port', '')}/{p.get('protocol', 'TCP')}" for p in ports) or "<none>"


_CELLS: Mapping[str, Callable[[Object, datetime], Any]] = {
    "node_state": lambda node, _: _node_state(node),
    "roles": lambda node, _: _roles(node),
    "internal_ip": lambda node, _: _address(node, "InternalIP"),
    "external_ip": lambda node, _: _address(node, "ExternalIP"),
    "ready_containers": lambda pod, _: _ready_containers(pod),
    "pod_state": lambda pod, _: pod_state(pod),
    "restarts": lambda pod, _: _restarts(pod),
    "last_seen": _last_seen,
    "object": lambda event, _: _about(event),
    "source": lambda event, _: _source(event),
    "message": lambda event, _: str(event.get("message", "")).strip(),
    "count": lambda event, _: int(event.get("series", {}).get("count") or event.get("count") or 1),
    "entries": lambda obj, _: str(sum(len(obj.get(key) or ()) for key in ("data", "binaryData"))),
    "claim": lambda volume, _: _claim(volume),
    "ports": lambda service, _: _ports(service),
    "ready_replicas": lambda obj, _: _ready_replicas(obj),
    "job_state": lambda job, _: _job_state(job),
    "completions": lambda job, _: _completions(job),
}


@dataclass(frozen=True, slots=True)
class Format:
    """One form of answers."""

    table: bool = False
    include: str = "Metadata"
    """How much of each object a Table carries: Metadata, Object or None."""

    def one(self, resource: Resource, item: Item) -> bytes:
        """Write an object."""
        if self.table:
            return encode(self._table(resource, [item.object], item.object["metadata"]))
        return encode(resource.view.show(item.object)) if resource.view else item.raw

    def many(self, resource: Resource, items: Iterable[Item], metadata: Object) -> bytes:
        """Write a list with this list metadata."""
        if self.table:
            return encode(self._table(resource, [item.object for item in items], metadata))
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
        start = encode(head | {"metadata": metadata})[:-1]
        return start + b',"items":[' + b",".join(self.one(resource, i) for i in items) + b"]}\n"

    def line(self, resource: Resource, kind: str, change: Change) -> bytes:
        """Write a watch event; encoded once for all watchers of the same form."""
        key = (kind, f"{resource.api_version} {self.table} {self.include}")
        line = change.lines.get(key)
        if line is None:
            item = change.item
            if kind == "DELETED" and change.kind != "DELETED" and change.previous:
                item = _stamped(change.previous, item)
            line = change.lines[key] = event(kind, self.one(resource, item))
        return line

    def _table(self, resource: Resource, objects: list[Object], metadata: Object) -> Object:
        head = {k: metadata[k] for k in _LIST_METADATA if k in metadata}
        return table(resource, objects, self.include, head)


_LIST_METADATA = ("resourceVersion", "continue", "remainingItemCount")


def event(kind: str, raw: bytes) -> bytes:
    """Write a watch event around an encoded object."""
    return b'{"type":"' + kind.encode() + b'","object":' + raw.rstrip() + b"}\n"


def negotiate(accept: str, query: Mapping[str, str]) -> Format:
    """Choose the first form of an Accept header that can be produced.

    Raises:
        StatusError: 406.
    """
    for choice in (accept or "*/*").split(","):
        media_type, *rest = (part.strip() for part in choice.split(";"))
        parameters = dict(part.partition("=")[::2] for part in rest)
        if media_type not in ("application/json", "application/*", "*/*"):
            continue
        wanted, known = parameters.get("as", ""), parameters.get("v") in ("v1", "v1beta1")
        if not wanted or (wanted == "Table" and parameters.get("g") == "meta.k8s.io" and known):
            return Format(bool(wanted), query.get("includeObject", "Metadata"))
    raise StatusError(406, "only the following media types are accepted: application/json")


def _stamped(old: Item, new: Item) -> Item:
    # An object that no longer matches is sent as it last matched, at the version of its change.
    version = {"resourceVersion": str(new.revision)}
    metadata = old.object["metadata"] | version
    return Item(old.object | {"metadata": metadata}, new.revision)
