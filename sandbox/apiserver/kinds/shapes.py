"""The types of the fields that this server, or a reader of its tables, relies on.

Objects stay plain dicts; a shape only refuses what no Kubernetes client could read. Fields that are
not named here may hold anything. A "!" after a name marks a field that must be there.
"""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

_SECONDS = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
_ZONE = r"(Z|[+-]\d\d:\d\d)$"
_Time = Annotated[str, Meta(pattern=rf"{_SECONDS}(\.\d+)?{_ZONE}")] | None
_MicroTime = Annotated[str, Meta(pattern=rf"{_SECONDS}\.\d{{6}}{_ZONE}")] | None
"""Go's form of it has exactly six digits of a second."""

_Map = dict[str, Any]
_Texts = dict[str, str]
_Amounts = dict[str, str | int | float]


def _checks(shape: dict[str, Any]) -> Callable[[bytes], None]:
    """Return a function that raises msgspec.DecodeError if JSON is not of this shape."""
    decoder = msgspec.json.Decoder(_type(shape))

    def check(text: bytes) -> None:
        decoder.decode(text)

    return check


def _type(shape: Any) -> Any:
    if isinstance(shape, list):
        return list[_type(shape[0])]  # type: ignore[misc]  # made at run time
    if not isinstance(shape, dict):
        return shape
    fields = [
        (name.rstrip("!"), _type(each)) if name.endswith("!") else _optional(name, _type(each))
        for name, each in shape.items()
    ]
    return msgspec.defstruct("Shape", fields, kw_only=True)


def _optional(name: str, kind: Any) -> tuple[str, Any, Any]:
    return name, kind | UnsetType, UNSET


# fmt: off
_METADATA = {
    "name": str, "generateName": str, "namespace": str, "uid": str, "resourceVersion": str,
    "creationTimestamp": _Time, "labels": _Texts, "annotations": _Texts,
    "finalizers": list[str], "ownerReferences": list[_Map],
}
_CONDITION = {"type!": str, "status": str, "reason": str}
_CONTAINER = {"ports": list[_Map], "imagePullPolicy": str}
_CONTAINER_STATUS = {"ready": bool, "restartCount": int, "state": dict[str, _Map]}
_POD_SPEC = {
    "containers": [_CONTAINER], "initContainers": [_CONTAINER], "restartPolicy": str,
    "dnsPolicy": str, "serviceAccountName": str, "schedulingGates": list[_Map],
    "readinessGates": [{"conditionType": str}], "tolerations": list[_Map],
}
_POD_STATUS = {
    "phase": str, "reason": str, "nominatedNodeName": str, "conditions": [_CONDITION],
    "containerStatuses": [_CONTAINER_STATUS],
}
_NODE_STATUS = {
    "conditions": [_CONDITION], "addresses": [{"type!": str, "address!": str}],
    "capacity": _Amounts, "allocatable": _Amounts, "nodeInfo": _Map,
}
_EVENT = {
    "involvedObject": _Texts, "regarding": _Texts, "source": _Texts, "deprecatedSource": _Texts,
    "message": str, "note": str, "reason": str, "type": str, "action": str,
    "count": int, "deprecatedCount": int, "eventTime": _MicroTime,
    "series": {"count": int, "lastObservedTime": _MicroTime},
    "firstTimestamp": _Time, "lastTimestamp": _Time,
    "deprecatedFirstTimestamp": _Time, "deprecatedLastTimestamp": _Time,
}
_LEASE = {
    "holderIdentity": str, "leaseDurationSeconds": int, "leaseTransitions": int,
    "acquireTime": _MicroTime, "renewTime": _MicroTime,
}
_WORKLOAD = {
    "replicas": int, "selector": _Map, "template": _Map,
    "volumeClaimTemplates": [{"metadata": _METADATA}],
}
_JOB = {
    "parallelism": int, "completions": int, "backoffLimit": int, "completionMode": str,
    "suspend": bool, "selector": _Map, "template": _Map,
}
_VOLUME = {
    "capacity": _Amounts, "accessModes": list[str], "claimRef": _Map, "nodeAffinity": _Map,
    "storageClassName": str, "volumeName": str,
}
_COLUMN = {"name!": str, "type!": str, "jsonPath!": str, "priority": int}
_VERSION = {
    "name!": str, "served!": bool, "storage!": bool, "schema": {"openAPIV3Schema": _Map},
    "subresources": _Map, "additionalPrinterColumns": [_COLUMN],
    "selectableFields": [{"jsonPath!": str}],
}
_NAMES = {
    "plural!": str, "kind!": str, "singular": str, "listKind": str,
    "shortNames": list[str], "categories": list[str],
}
_DEFINITION = {"group!": str, "names!": _NAMES, "scope!": str, "versions!": [_VERSION]}
# fmt: on

ANY = _checks({"metadata": _METADATA})
PLAIN = _checks({"spec": _Map, "status": _Map})
POD = _checks({"spec": _POD_SPEC, "status": _POD_STATUS})
NODE = _checks({"spec": {"taints": list[_Map], "unschedulable": bool}, "status": _NODE_STATUS})
EVENT = _checks(_EVENT)
LEASE = _checks({"spec": _LEASE})
PRIORITY_CLASS = _checks({"value": int, "globalDefault": bool, "preemptionPolicy": str})
WORKLOAD = _checks({"spec": _WORKLOAD, "status": {"replicas": int, "readyReplicas": int}})
JOB = _checks({"spec": _JOB, "status": {"active": int, "succeeded": int, "failed": int}})
VOLUME = _checks({"spec": _VOLUME, "status": _Map})
SECRET = _checks({"data": _Texts, "stringData": _Texts})
DEFINITION = _checks({"spec!": _DEFINITION})
