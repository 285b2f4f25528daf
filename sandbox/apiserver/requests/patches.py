"""Carries out a PATCH: chooses the kind of patch by its media type and stores the outcome."""

from collections.abc import Callable
from typing import Any

import jsonpatch
import jsonpointer

from sandbox.apiserver.errors import (
    Cause,
    bad_request,
    invalid,
    unsupported_media_type,
)
from sandbox.apiserver.requests.bodies import decode, read_object, without_nulls
from sandbox.apiserver.requests.call import Call
from sandbox.apiserver.requests.scale import SCALE, scale_of, scaled
from sandbox.apiserver.requests.strategic import apply_strategic
from sandbox.apiserver.resources.paths import Target
from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.store import Item

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
