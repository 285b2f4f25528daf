"""Events in their two API versions: stored as v1, shown as events.k8s.io/v1 too.

kubectl reads v1; schedulers write events.k8s.io/v1. Both must see the same events.
"""

from collections.abc import Iterator, Mapping

from sandbox.apiserver.errors import Cause, invalid_value, required
from sandbox.apiserver.kinds.hooks import Hooks
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

_CLUSTER_WIDE = ("default", "kube-system")
"""Where the events of objects without a namespace are kept."""


def _validate_core(event: Object) -> Iterator[Cause]:
    return _check_namespace(event, "involvedObject")


def _validate_group(event: Object) -> Iterator[Cause]:
    for key in ("eventTime", "reportingComponent", "reportingInstance", "action", "reason"):
        if not event.get(key):
            yield required(TO_GROUP.get(key, key))
    if event.get("type") not in ("Normal", "Warning"):
        yield invalid_value("type", event.get("type", ""), "")
    yield from _check_namespace(event, "regarding")


def _check_namespace(event: Object, name: str) -> Iterator[Cause]:
    about = event.get("involvedObject", {}).get("namespace", "")
    kept = event["metadata"].get("namespace", "")
    if kept != about if about else kept not in _CLUSTER_WIDE:
        yield invalid_value(f"{name}.namespace", about, "does not match event.namespace")


def _write_empty_times(event: Object) -> None:
    """Write times that are not set as null, as Go does: `kubectl get events --sort-by` needs it."""
    for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(key, None)


MOST_EVENTS = 10_000
"""In a namespace. kube-apiserver drops events after an hour instead."""

CORE_HOOKS = Hooks(default=_write_empty_times, validate=_validate_core, most=MOST_EVENTS)
GROUP_HOOKS = Hooks(default=_write_empty_times, validate=_validate_group, most=MOST_EVENTS)
