"""Events in their two API versions: stored as v1, shown as events.k8s.io/v1 too.

kubectl reads v1; schedulers write events.k8s.io/v1. Both must see the same events.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sandbox.apiserver.store import Object

_ABOUT = ("kind", "name", "namespace", "uid", "apiVersion", "resourceVersion", "fieldPath")
_SHARED = {"reason": "", "type": ""}
CORE_FIELDS = (
    {f"involvedObject.{key}": "" for key in _ABOUT}
    | {"reportingComponent": "", "source": ""}
    | _SHARED
)
GROUP_FIELDS = {f"regarding.{key}": "" for key in _ABOUT} | {"reportingController": ""} | _SHARED

_TO_GROUP = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_TO_CORE = {new: old for old, new in _TO_GROUP.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A pair of functions between the stored form of an object and that of another API version."""

    show: Callable[[Object], Object]
    store: Callable[[Object], Object]


def _renamed(event: Object, names: Mapping[str, str], api_version: str) -> Object:
    return {names.get(key, key): value for key, value in event.items()} | {
        "apiVersion": api_version
    }


GROUP_VIEW = View(
    show=lambda event: _renamed(event, _TO_GROUP, "events.k8s.io/v1"),
    store=lambda event: _renamed(event, _TO_CORE, "v1"),
)
