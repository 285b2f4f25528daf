"""What clients are answered with: whole objects, or the Table of `kubectl get`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, NamedTuple

from sandbox.apiserver.errors import StatusError
from sandbox.apiserver.resources.table import ApiResource, Object, value_at
from sandbox.apiserver.store.store import Item, StoreEvent, encode

_ROLE = "node-role.kubernetes.io/"
_COLUMNS: Final[Mapping[str, str]] = {
    "/nodes": "Status=@node_state Roles=@roles Age Version=status.nodeInfo.kubeletVersion"
    " *Internal-IP=@internal_ip *OS-Image=status.nodeInfo.osImage?<unknown>",
    "/pods": "Ready=@ready_containers Status=@pod_state Restarts=@restarts Age"
    " *IP=status.podIP?<none> *Node=spec.nodeName?<none>"
    " *Nominated_Node=status.nominatedNodeName?<none>",
    "events": "Last_Seen=@last_seen Type=type Reason=reason Object=@object"
    " *Source=@source Message=@message *Count=@count *Name=metadata.name",
    "/namespaces": "Status=status.phase Age",
    "apps/deployments": "Ready=@ready_replicas Up-to-date=status.updatedReplicas?0"
    " Available=status.availableReplicas?0 Age",
    "apps/replicasets": "Desired=spec.replicas?0 Current=status.replicas?0"
    " Ready=status.readyReplicas?0 Age",
    "apps/statefulsets": "Ready=@ready_replicas Age",
    "batch/jobs": "Status=@job_state Completions=@completions Age",
    "coordination.k8s.io/leases": "Holder=spec.holderIdentity Age",
    "scheduling.k8s.io/priorityclasses": "Value=value Age",
}
"""Columns after the name: TITLE=PATH?DEFAULT, or TITLE=@CELL; with a star only with -o wide.

Kinds that are not named have an age only.
"""


class _Column(NamedTuple):
    """A column of `kubectl get`: its title, how to fill it, and whether only -o wide shows it."""

    name: str
    cell: Callable[[Object], Any]
    wide: bool


def table(
    resource: ApiResource, objects: Iterable[Object], *, whole: bool, metadata: Object
) -> Object:
    """Return a Table whose rows have whole objects, or their metadata."""
    columns = _columns(resource.stored_as)

    def row(obj: Object) -> Object:
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        shown = obj if whole else partial | {"metadata": obj["metadata"]}
        return {"cells": [column.cell(obj) for column in columns], "object": shown}

    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [
            {
                "name": column.name,
                "type": "string",
                "format": "name" if column.name == "Name" and not column.wide else "",
                "priority": int(column.wide),
            }
            for column in columns
        ],
        "rows": [row(obj) for obj in objects],
    }


@cache
def _columns(storage: str) -> tuple[_Column, ...]:
    columns = tuple(map(_read, _COLUMNS.get(storage, "Age").split()))
    return columns if storage == "events" else (_read("Name=metadata.name"), *columns)


def _read(word: str) -> _Column:
    if word == "Age":
        return _Column(word, lambda obj: age(obj["metadata"]["creationTimestamp"]), False)
    title, _, place = word.removeprefix("*").partition("=")
    name, wide = title.replace("_", " "), word.startswith("*")
    if place.startswith("@"):
        return _Column(name, _CELLS[place[1:]], wide)
    path, _, default = place.partition("?")

    def field(obj: Object) -> Any:
        value = value_at(obj, path)
        return default if value in (None, "") else value

    return _Column(name, field, wide)


def age(text: str | None, present: datetime | None = None) -> str:
    """Return how long ago a timestamp was; <unknown> without one."""
    if not text:
        return "<unknown>"
    then = datetime.fromisoformat(text)
    return short(int(((present or datetime.now(UTC)) - then).total_seconds()))


def short(seconds: int) -> str:
    """Write a duration in one unit, coarser as it grows: 95s, 5m, 3h, 4d."""
    for below, size, unit in ((120, 1, "s"), (2 * 3600, 60, "m"), (48 * 3600, 3600, "h")):
        if seconds < below:
            return f"{max(seconds, 0) // size}{unit}"
    return f"{seconds // 86_400}d"


def pod_state(pod: Object) -> str:
    """Return the word under STATUS."""
    status = pod.get("status", {})
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    for each in _statuses(pod):
        for state in ("waiting", "terminated"):
            if trouble := value_at(each, f"state.{state}.reason"):
                return str(trouble)
    if _conditions(pod, "reason").get("PodScheduled") == "SchedulingGated":
        return "SchedulingGated"
    return str(status.get("reason") or status.get("phase", ""))


def _conditions(obj: Object, key: str = "status") -> dict[str, Any]:
    return {c.get("type"): c.get(key) for c in obj.get("status", {}).get("conditions", ())}


def _statuses(pod: Object) -> list[Object]:
    return pod.get("status", {}).get("containerStatuses") or []


def _ready_containers(pod: Object) -> str:
    ready = sum(bool(status.get("ready")) for status in _statuses(pod))
    return f"{ready}/{len(pod['spec'].get('containers', ()))}"


def _node_state(node: Object) -> str:
    ready = {"True": "Ready", None: "Unknown"}.get(_conditions(node).get("Ready"), "NotReady")
    return f"{ready},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else ready


def _roles(node: Object) -> str:
    labels = node["metadata"].get("labels", {})
    roles = sorted(key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE))
    return ",".join(filter(None, roles)) or "<none>"


def _internal_ip(node: Object) -> str:
    addresses = node.get("status", {}).get("addresses", ())
    return next(
        (a.get("address", "") for a in addresses if a.get("type") == "InternalIP"), "<none>"
    )


def _last_seen(event: Object) -> str:
    return age(
        value_at(event, "series.lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
    )


def _completions(job: Object) -> str:
    spec = job.get("spec", {})
    wanted = spec.get("completions", f"1 of {spec.get('parallelism', 1)}")
    return f"{job.get('status', {}).get('succeeded', 0)}/{wanted}"


def _job_state(job: Object) -> str:
    if ended := [kind for kind, status in _conditions(job).items() if status == "True"]:
        return str(ended[-1])
    return "Suspended" if job.get("spec", {}).get("suspend") else "Running"


_CELLS: Mapping[str, Callable[[Object], Any]] = {
    "node_state": _node_state,
    "roles": _roles,
    "internal_ip": _internal_ip,
    "ready_containers": _ready_containers,
    "pod_state": pod_state,
    "restarts": lambda pod: str(sum(c.get("restartCount", 0) for c in _statuses(pod))),
    "last_seen": _last_seen,
    "object": lambda event: (
        f"{value_at(event, 'involvedObject.kind') or ''}".lower()
        + f"/{value_at(event, 'involvedObject.name') or ''}"
    ),
    "source": lambda event: (
        value_at(event, "source.component") or event.get("reportingComponent", "")
    ),
    "message": lambda event: event.get("message", "").strip(),
    "count": lambda event: value_at(event, "series.count") or event.get("count") or 1,
    "ready_replicas": lambda obj: (
        f"{value_at(obj, 'status.readyReplicas') or 0}/{value_at(obj, 'spec.replicas') or 0}"
    ),
    "job_state": _job_state,
    "completions": _completions,
}


@dataclass(frozen=True, slots=True)
class Format:
    """One form of answers."""

    table: bool = False
    whole: bool = False
    """Whether the rows of a Table have whole objects."""

    def one(self, resource: ApiResource, item: Item) -> bytes:
        """Write an object."""
        if self.table:
            return encode(self._table(resource, [item.object], item.object["metadata"]))
        return encode(resource.view.show(item.object)) if resource.view else item.raw

    def many(self, resource: ApiResource, items: Iterable[Item], metadata: Object) -> bytes:
        """Write a list with this list metadata."""
        if self.table:
            return encode(self._table(resource, [item.object for item in items], metadata))
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
        start = encode(head | {"metadata": metadata})[:-1]
        return start + b',"items":[' + b",".join(self.one(resource, i) for i in items) + b"]}\n"

    def line(self, resource: ApiResource, kind: str, change: StoreEvent) -> bytes:
        """Write a watch event; encoded once for all watchers of the same form."""
        key = (kind, f"{resource.api_version} {self.table} {self.whole}")
        line = change.lines.get(key)
        if line is None:
            item = change.item
            if kind == "DELETED" and change.kind != "DELETED" and change.previous:
                item = _stamped(change.previous, item)
            line = change.lines[key] = event(kind, self.one(resource, item))
        return line

    def _table(self, resource: ApiResource, objects: list[Object], metadata: Object) -> Object:
        head = {k: metadata[k] for k in _LIST_METADATA if k in metadata}
        return table(resource, objects, whole=self.whole, metadata=head)


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
            return Format(bool(wanted), query.get("includeObject") == "Object")
    raise StatusError(406, "only the following media types are accepted: application/json")


def _stamped(old: Item, new: Item) -> Item:
    # An object that no longer matches is sent as it last matched, at the version of its change.
    version = {"resourceVersion": str(new.revision)}
    metadata = old.object["metadata"] | version
    return Item(old.object | {"metadata": metadata}, new.revision)
