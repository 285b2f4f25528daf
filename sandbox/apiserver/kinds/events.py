"""Which events are invalid, in either of their API versions."""

from collections.abc import Iterator

from sandbox.apiserver.errors import Cause, invalid_value, required
from sandbox.apiserver.kinds.hooks import Hooks
from sandbox.apiserver.resources.events import TO_GROUP
from sandbox.apiserver.resources.resource import Object

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


CORE_HOOKS = Hooks(default=_write_empty_times, validate=_validate_core)
GROUP_HOOKS = Hooks(default=_write_empty_times, validate=_validate_group)
