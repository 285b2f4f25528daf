"""Changes what a path shows of an object: patches of each kind, and the subresource scale.

A strategic merge patch is a JSON merge patch that knows which lists are merged, and by which key:
those of the Kubernetes types. A list that is not named here is replaced as a whole (tolerations and
taints among them). The order of elements is left alone: $setElementOrder is not looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jsonpatch
import jsonpointer

from sandbox.apiserver.errors import (
    Cause,
    StatusError,
    bad_request,
    invalid,
    invalid_value,
    unsupported_media_type,
)
from sandbox.apiserver.requests.bodies import Call, decode, read_object, without_nulls
from sandbox.apiserver.resources.table import ApiResource, Object, Target
from sandbox.apiserver.store.cluster import EmbeddedCluster
from sandbox.apiserver.store.store import Item

SCALE = ApiResource(group="autoscaling", version="v1", plural="scales", kind="Scale")
_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(obj: Object) -> Object:
    """Return the Scale of an object."""
    metadata = obj["metadata"]
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {key: metadata[key] for key in _SHOWN if key in metadata},
        "spec": {"replicas": obj.get("spec", {}).get("replicas", 0)},
        "status": {"replicas": obj.get("status", {}).get("replicas", 0)},
    }


def scaled(obj: Object, scale: Object) -> Object:
    """Return the object with the number of replicas of a Scale, as an update of that version.

    Raises:
        StatusError: 422, the number is negative.
    """
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        causes = [invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")]
        raise invalid(SCALE.kind, obj["metadata"]["name"], causes, group=SCALE.group)
    given = {k: v for k, v in scale["metadata"].items() if k in ("name", "uid", "resourceVersion")}
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"} | given
    return obj | {"spec": obj.get("spec", {}) | {"replicas": replicas}, "metadata": metadata}


def patch(cluster: EmbeddedCluster, call: Call) -> Item:
    """Apply a patch; return the object as stored.

    Raises:
        StatusError: 400, 404, 409, 415 or 422.
    """
    apply = _KINDS.get(call.media_type)
    if apply is None:
        raise unsupported_media_type(call.media_type, list(_KINDS))
    old = shown(call.target, cluster.get(call.target).object)
    new = apply(old, decode(call.body, ""))
    try:
        return replace(cluster, call, new, old)
    except StatusError as error:
        if error.code != 400:
            raise
        # What a patch makes of an object that was right is invalid, not malformed.
        raise invalid("", "", [invalid_value("patch", "", error.message)]) from error


def shown(target: Target, stored: Object) -> Object:
    """Return what the path of a request shows of a stored object."""
    if target.subresource == "scale":
        return scale_of(stored)
    return target.resource.view.show(stored) if target.resource.view else stored


def replace(cluster: EmbeddedCluster, call: Call, value: Any, known: Object | None = None) -> Item:
    """Put *value* in the place of what the path shows; *known* is what was patched.

    Raises:
        StatusError: 400, 404, 409 or 422.
    """
    target = call.target
    if target.subresource == "scale":
        scale = read_object(call, value, SCALE, known=known)
        obj = scaled(cluster.get(target).object, scale)
    else:
        obj = read_object(call, value, known=known)
    return cluster.update(target, obj, dry_run=call.dry_run)


def merge(old: Any, change: Any) -> Object:
    """Apply a JSON merge patch (RFC 7386): null removes, objects merge.

    Raises:
        StatusError: 400, the patch is no object.
    """
    _require_object(change)
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
    try:
        return jsonpatch.JsonPatch(operations).apply(without_nulls(old))
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


MERGE_KEYS: Mapping[str, str] = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists of objects that are merged: the key that identifies an element."""

SETS = frozenset(("finalizers", "podCIDRs"))
"""Lists of plain values that are merged: the union."""

_DELETE_VALUES = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"
_DIRECTIVE = "$patch"


def apply_strategic(old: Any, patch: Any) -> Object:
    """Return the old object with a strategic merge patch applied.

    Raises:
        StatusError: 400, the patch is no object, or a directive or a list in it is malformed.
    """
    _require_object(patch)
    if (directive := patch.get(_DIRECTIVE, "merge")) == "delete":
        return {}
    if directive != "merge":
        raise bad_request(f"{_DIRECTIVE}: {directive!r} is not known here: delete or merge")
    result = dict(old) if isinstance(old, dict) else {}
    if _RETAIN in patch:
        result = {k: v for k, v in result.items() if k in _list(patch, _RETAIN)}
    for key, value in patch.items():
        if key.startswith(_DELETE_VALUES):
            _remove_values(result, key.removeprefix(_DELETE_VALUES), _list(patch, key))
        elif not key.startswith("$"):
            _apply_field(result, key, value)
    return result


def merge_list(field: str, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Return a list with the elements of another merged in, by the rules for lists of that name.

    Raises:
        StatusError: 400, an element lacks the key that identifies it.
    """
    if field in SETS:
        return _united(old, new)
    key = MERGE_KEYS.get(field)
    if key is None or not all(isinstance(each, dict) for each in (*old, *new)):
        return list(new)
    return _merge_elements(field, key, old, new)


def _united(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Return all values: new ones first, but old ones in their order."""
    left: list[Any] = [each for each in old if each not in new]
    result: list[Any] = []
    for each in new:
        if each in old:
            earlier = [one for one in left if old.index(one) < old.index(each)]
            result, left = result + earlier, left[len(earlier) :]
        result.append(each)
    return result + left


def _apply_field(result: Object, key: str, value: Any) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        if value.get(_DIRECTIVE) == "delete":
            result.pop(key, None)
        else:
            result[key] = apply_strategic(result.get(key), value)
    elif isinstance(value, list):
        old = result.get(key)
        result[key] = merge_list(key, old if isinstance(old, list) else [], value)
    else:
        result[key] = value


def _merge_elements(
    field: str, key: str, old: Sequence[Object], new: Sequence[Object]
) -> list[Object]:
    merged: dict[Any, Object] = {_identity(field, key, each): each for each in old}
    for each in new:
        identity = _identity(field, key, each)
        if each.get(_DIRECTIVE) == "delete":
            merged.pop(identity, None)
        else:
            merged[identity] = apply_strategic(merged.get(identity), each)
    return list(merged.values())


def _identity(field: str, key: str, element: Object) -> Any:
    value = element.get(key)
    if value is None and key == "containerPort":
        value = element.get("port")  # of a Service
    if not isinstance(value, str | int):
        raise bad_request(f"each element of {field} needs its merge key {key}")
    # One port number may be served with two protocols.
    return (value, element.get("protocol", "TCP")) if key == "containerPort" else value


def _remove_values(result: Object, field: str, values: Sequence[Any]) -> None:
    if isinstance(result.get(field), list):
        result[field] = [each for each in result[field] if each not in values]


def _require_object(patch: Any) -> None:
    if not isinstance(patch, dict):
        raise bad_request("the patch must be an object")


def _list(patch: Object, key: str) -> list[Any]:
    value = patch[key]
    if not isinstance(value, list):
        raise bad_request(f"{key} must be a list")
    return value


_KINDS: dict[str, Callable[[Object, Any], Any]] = {
    "application/json-patch+json": apply_json_patch,
    "application/merge-patch+json": merge,
    "application/strategic-merge-patch+json": apply_strategic,
}
