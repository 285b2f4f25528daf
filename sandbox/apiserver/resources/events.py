"""Events in their two API versions: stored as v1, shown as events.k8s.io/v1 too.

kubectl reads v1; schedulers write events.k8s.io/v1. Both must see the same events.
"""

from collections.abc import Mapping

from sandbox.apiserver.resources.resource import Object, View

_ABOUT = ("kind", "name", "namespace", "uid", "apiVersion", "resourceVersion", "fieldPath")
_SHARED = {"reason": "", "type": ""}
CORE_FIELDS = (
    {f"involvedObject.{key}": "" for key in _ABOUT}
    | {"reportingComponent": "", "source": ""}
    | _SHARED
)
GROUP_FIELDS = {f"regarding.{key}": "" for key in _ABOUT} | {"reportingController": ""} | _SHARED

TO_GROUP = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""The fields of v1 that events.k8s.io/v1 calls otherwise."""

_TO_CORE = {new: old for old, new in TO_GROUP.items()}


def _renamed(event: Object, names: Mapping[str, str], version: str) -> Object:
    return {names.get(key, key): value for key, value in event.items()} | {"apiVersion": version}


GROUP_VIEW = View(
    show=lambda event: _renamed(event, TO_GROUP, "events.k8s.io/v1"),
    store=lambda event: _renamed(event, _TO_CORE, "v1"),
)
