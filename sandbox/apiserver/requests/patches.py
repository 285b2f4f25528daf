"""Carries out a PATCH and the subresource scale: what the path shows is changed and stored."""

from collections.abc import Callable
from typing import Any

import jsonpatch
import jsonpointer

from sandbox.apiserver.errors import (
    Cause,
    bad_request,
    invalid,
    invalid_value,
    unsupported_media_type,
)
from sandbox.apiserver.requests.bodies import decode, read_object, without_nulls
from sandbox.apiserver.requests.call import Call
from sandbox.apiserver.requests.strategic import apply_strategic
from sandbox.apiserver.resources.paths import Target
from sandbox.apiserver.resources.resource import Object, ReplicaPaths, Resource, value_at
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.store import Item

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


MAX_OPERATIONS = 10_000
APPLY = "application/apply-patch+yaml"
NO_OWNERS = "the sandbox merges what is applied; it records no field owners and finds no conflicts"


def patch(cluster: Cluster, call: Call) -> tuple[Item, bool]:
    """Apply a patch; return the object as stored, and whether the patch created it.

    Raises:
        StatusError: 400, 404, 409, 415 or 422.
    """
    apply = _KINDS.get(call.media_type)
    if apply is None:
        raise unsupported_media_type(call.media_type, list(_KINDS))
    value = decode(call.body, "application/yaml" if call.media_type == APPLY else "")
    if call.media_type == APPLY:
        call.warnings.append(NO_OWNERS)
        if not cluster.collection(call.target.resource).get(call.target.space, call.target.name):
            obj = read_object(call, value)
            obj["metadata"].setdefault("name", call.target.name)
            return cluster.create(call.target, obj, dry_run=call.dry_run), True
    old = shown(call.target, cluster.get(call.target).object)
    return replace(cluster, call, apply(old, value), old), False


def shown(target: Target, stored: Object) -> Object:
    """Return what the path of a request shows of a stored object."""
    if target.subresource == "scale":
        return scale_of(target.resource.replicas, stored)
    return target.resource.view.show(stored) if target.resource.view else stored


def replace(cluster: Cluster, call: Call, value: Any, known: Object | None = None) -> Item:
    """Put *value* in the place of what the path shows; *known* is what was patched.

    Raises:
        StatusError: 400, 404, 409 or 422.
    """
    target = call.target
    if target.subresource == "scale":
        scale = read_object(call, value, SCALE, known=known)
        obj = scaled(target.resource.replicas, cluster.get(target).object, scale)
    else:
        obj = read_object(call, value, known=known)
    return cluster.update(target, obj, dry_run=call.dry_run)


def merge(old: Any, change: Object) -> Object:
    """Apply a JSON merge patch (RFC 7386): null removes, objects merge."""
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value) if isinstance(value, dict) else value
    return result


def apply_json_patch(old: Object, operations: Any) -> Any:
    """Return the old object with the operations of a JSON patch (RFC 6902), all or none.

    Raises:
        StatusError: 400 for a malformed operation, 422 for a test that fails or a missing path.
    """
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise bad_request("a JSON patch must be a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise bad_request(f"a JSON patch may have {MAX_OPERATIONS} operations")
    try:
        parsed = jsonpatch.JsonPatch(operations)
    except (jsonpatch.InvalidJsonPatch, jsonpointer.JsonPointerException) as error:
        raise bad_request(f"the JSON patch is malformed: {error}") from error
    try:
        return parsed.apply(without_nulls(old))
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(f"the JSON patch is malformed: {error}") from error
    except (
        jsonpatch.JsonPatchException,
        jsonpointer.JsonPointerException,
        TypeError,
        KeyError,
    ) as error:
        cause = Cause(field="", reason="FieldValueInvalid", message=str(error))
        raise invalid("JSONPatch", "", [cause]) from error


def _merged(old: Object, change: Any) -> Object:
    return merge(old, _object(change))


def _strategic(old: Object, change: Any) -> Object:
    return apply_strategic(old, _object(change))


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        raise bad_request("the patch must be an object")
    return value


_KINDS: dict[str, Callable[[Object, Any], Any]] = {
    "application/json-patch+json": apply_json_patch,
    "application/merge-patch+json": _merged,
    "application/strategic-merge-patch+json": _strategic,
    APPLY: _strategic,
}
