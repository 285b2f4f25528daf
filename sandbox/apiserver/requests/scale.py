"""The subresource scale: an object's number of replicas, as kubectl and autoscalers set it."""

from typing import Any

from sandbox.apiserver.errors import Cause, invalid, invalid_value
from sandbox.apiserver.resources.resource import Object, ReplicaPaths, Resource, value_at

SCALE = Resource(group="autoscaling", version="v1", plural="scales", kind="Scale")
_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(paths: ReplicaPaths, obj: Object) -> Object:
    """Return the Scale of an object."""
    status: Object = {"replicas": value_at(obj, paths.present) or 0}
    if selector := _as_text(value_at(obj, paths.selector)):
        status["selector"] = selector
    metadata = obj["metadata"]
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {key: metadata[key] for key in _SHOWN if key in metadata},
        "spec": {"replicas": value_at(obj, paths.wanted) or 0},
        "status": status,
    }


def scaled(paths: ReplicaPaths, obj: Object, scale: Object) -> Object:
    """Return the object with the number of replicas of a Scale, as an update of that version.

    Raises:
        StatusError: 422, the number is negative.
    """
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        causes: list[Cause] = [
            invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        ]
        raise invalid(SCALE.kind, obj["metadata"]["name"], causes, group=SCALE.group)
    given = {k: v for k, v in scale["metadata"].items() if k in ("name", "uid", "resourceVersion")}
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"} | given
    return _with(obj, paths.wanted.split("."), replicas) | {"metadata": metadata}


def _with(obj: Any, keys: list[str], value: object) -> Object:
    inner = obj if isinstance(obj, dict) else {}
    first, *rest = keys
    return inner | {first: _with(inner.get(first), rest, value) if rest else value}


def _as_text(selector: Any) -> str:
    """Write a label selector, or a map of labels, as a query has it."""
    if not isinstance(selector, dict):
        return selector or ""
    labels = selector if _is_map_of_labels(selector) else selector.get("matchLabels") or {}
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    for each in selector.get("matchExpressions") or () if labels is not selector else ():
        key, operator, values = each["key"], each["operator"], ",".join(each.get("values") or ())
        forms = {"Exists": key, "DoesNotExist": f"!{key}"}
        parts.append(forms.get(operator, f"{key} {operator.lower()} ({values})"))
    return ",".join(parts)


def _is_map_of_labels(selector: Object) -> bool:
    return all(isinstance(value, str) for value in selector.values())
