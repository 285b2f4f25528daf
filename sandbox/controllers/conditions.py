"""Conditions of workloads, with the times at which they changed."""

from collections.abc import Iterable

from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.store.times import now, stamp


def condition(kind: str, status: bool, reason: str, message: str) -> Object:
    """Return a condition without times."""
    return {"type": kind, "status": str(status), "reason": reason, "message": message}


def with_times(conditions: Iterable[Object], before: Iterable[Object]) -> list[Object]:
    """Return conditions with the times of those *before* as far as nothing has changed."""
    known = {each["type"]: each for each in before}
    return [_with_times(each, known.get(each["type"], {})) for each in conditions]


def _with_times(new: Object, old: Object) -> Object:
    time = stamp(now())
    same = all(old.get(key) == value for key, value in new.items())
    moved = old.get("status") != new["status"]
    return new | {
        "lastUpdateTime": old.get("lastUpdateTime", time) if same else time,
        "lastTransitionTime": time if moved else old.get("lastTransitionTime", time),
    }
