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
from sandbox.apiserver.requests.bodies import check_object, decode_json, without_nulls
from sandbox.apiserver.requests.call import Call
from sandbox.apiserver.requests.strategic import apply_strategic
from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.store.cluster import Cluster
from sandbox.apiserver.store.store import Item

MAX_OPERATIONS = 10_000


def patch(cluster: Cluster, call: Call) -> Item:
    """Apply a patch and return the object as stored.

    Raises:
        StatusError: 400, 404, 409, 415 or 422.
    """
    apply = _KINDS.get(call.media_type)
    if apply is None:
        raise unsupported_media_type(call.media_type, list(_KINDS))
    resource, stored = call.target.resource, cluster.get(call.target).object
    shown = resource.view.show(stored) if resource.view else stored
    obj = check_object(resource, apply(shown, decode_json(call.body)))
    return cluster.update(call.target, obj, dry_run=call.dry_run)


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
}
