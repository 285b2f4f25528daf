"""Strategic merge patch: a JSON merge patch that knows which lists are merged, and by which key.

The keys are those of the Kubernetes types; a list that is not named here is replaced as a whole
(tolerations and taints among them).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.apiserver.errors import bad_request
from sandbox.apiserver.resources.resource import Object

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
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
_DIRECTIVE = "$patch"


def apply_strategic(old: Any, patch: Object) -> Object:
    """Return the old object with a strategic merge patch applied.

    Raises:
        StatusError: 400, a directive or a list in the patch is malformed.
    """
    directive = patch.get(_DIRECTIVE, "merge")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    result = dict(old) if isinstance(old, dict) else {}
    if _RETAIN in patch:
        result = {k: v for k, v in result.items() if k in _list(patch, _RETAIN)}
    for key, value in patch.items():
        if key.startswith(_DELETE_VALUES):
            _remove_values(result, key.removeprefix(_DELETE_VALUES), _list(patch, key))
        elif not key.startswith("$"):
            _apply_field(result, key, value)
    for key in patch:
        if key.startswith(_ORDER):
            _reorder(result, key.removeprefix(_ORDER), _list(patch, key))
    return result


def merge_list(field: str, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Return a list with the elements of another merged in, by the rules for lists of that name.

    Raises:
        StatusError: 400, an element lacks the key that identifies it.
    """
    if field in SETS:
        return [*old, *(each for each in new if each not in old)]
    key = MERGE_KEYS.get(field)
    if key is None or not all(isinstance(each, dict) for each in (*old, *new)):
        return list(new)
    return _merge_elements(field, key, old, new)


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
    if any(each.get(_DIRECTIVE) == "replace" for each in new):
        return [each for each in new if _DIRECTIVE not in each]
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


def _reorder(result: Object, field: str, order: Sequence[Any]) -> None:
    elements, key = result.get(field), MERGE_KEYS.get(field, "")
    if not isinstance(elements, list):
        return
    wanted = [each.get(key) if isinstance(each, dict) else each for each in order]
    present = [each.get(key) if isinstance(each, dict) else each for each in elements]
    places = {present[i]: i for i in range(len(present)) if isinstance(present[i], str | int)}
    if len(places) != len(elements) or not set(places) <= {*filter(_hashable, wanted)}:
        return  # elements that others added keep their places
    result[field] = [elements[places[each]] for each in wanted if each in places]


def _hashable(value: Any) -> bool:
    return isinstance(value, str | int)


def _list(patch: Object, key: str) -> list[Any]:
    value = patch[key]
    if not isinstance(value, list):
        raise bad_request(f"{key} must be a list")
    return value
