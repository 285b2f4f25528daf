"""Events in their two API versions: stored as v1, shown as events.k8s.io/v1 too.

kubectl reads v1; schedulers write events.k8s.io/v1. Both must see the same events.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sandbox.apiserver import shapes
from sandbox.apiserver.errors import Cause
from sandbox.apiserver.rules import Rules
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
_CLUSTER_WIDE = ("default", "kube-system")
"""Where the events of objects without a namespace are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A pair of functions between the stored form of an object and that of another API version."""

    show: Callable[[Object], Object]
    store: Callable[[Object], Object]


def _renamed(event: Object, names: Mapping[str, str], version: str) -> Object:
    return {names.get(key, key): value for key, value in event.items()} | {"apiVersion": version}


def _validate_core(event: Object) -> Iterator[Cause]:
    return _check_namespace(event, "involvedObject")


def _validate_group(event: Object) -> Iterator[Cause]:
    for key in ("eventTime", "reportingComponent", "reportingInstance", "action", "reason"):
        if not event.get(key):
            field = _TO_GROUP.get(key, key)
            yield Cause(field=field, reason="FieldValueRequired", message="Required value")
    if event.get("type") not in ("Normal", "Warning"):
        message = f'Invalid value: "{event.get("type", "")}": '
        yield Cause(field="type", reason="FieldValueInvalid", message=message)
    yield from _check_namespace(event, "regarding")


def _check_namespace(event: Object, name: str) -> Iterator[Cause]:
    about = event.get("involvedObject", {}).get("namespace", "")
    kept = event["metadata"].get("namespace", "")
    if kept != about if about else kept not in _CLUSTER_WIDE:
        message = f'Invalid value: "{about}": does not match event.namespace'
        yield Cause(field=f"{name}.namespace", reason="FieldValueInvalid", message=message)


GROUP_VIEW = View(
    show=lambda event: _renamed(event, _TO_GROUP, "events.k8s.io/v1"),
    store=lambda event: _renamed(event, _TO_CORE, "v1"),
)
CORE_RULES = Rules(validate=_validate_core, shape=shapes.checks(shapes.Event))
GROUP_RULES = Rules(validate=_validate_group, shape=shapes.checks(shapes.Event))
