"""Carries out a PATCH: chooses the kind of patch by its media type and stores the outcome."""

from collections.abc import Callable
from typing import Any

from sandbox.apiserver.applying import apply_config
from sandbox.apiserver.cluster import Cluster
from sandbox.apiserver.errors import bad_request, unsupported_media_type
from sandbox.apiserver.incoming import check_object, decode, decode_json, without_nulls
from sandbox.apiserver.jsonpatch import apply_json_patch
from sandbox.apiserver.merging import merge
from sandbox.apiserver.paths import Target
from sandbox.apiserver.requests import Call
from sandbox.apiserver.store import Item, Object
from sandbox.apiserver.strategic import apply_strategic

APPLY = "application/apply-patch+yaml"


def patch(cluster: Cluster, call: Call) -> tuple[Item, bool]:
    """Apply a patch; return the object as stored and whether it was created.

    Raises:
        StatusError: 400, 404, 409, 415 or 422.
    """
    if call.media_type == APPLY:
        return _apply(cluster, call)
    change = _KINDS.get(call.media_type)
    if change is None:
        raise unsupported_media_type(call.media_type, [*_KINDS, APPLY])
    old = _shown(call.target, cluster.get(call.target))
    obj = check_object(call.target.resource, change(old, decode_json(call.body)))
    return cluster.update(call.target, obj, dry_run=call.dry_run), False


def _merged(old: Object, change: Any) -> Object:
    return merge(old, _object(change))


def _strategic(old: Object, change: Any) -> Object:
    return apply_strategic(old, _object(change))


_KINDS: dict[str, Callable[[Object, Any], Any]] = {
    "application/json-patch+json": apply_json_patch,
    "application/merge-patch+json": _merged,
    "application/strategic-merge-patch+json": _strategic,
}


def _apply(cluster: Cluster, call: Call) -> tuple[Item, bool]:
    target, manager = call.target, call.query.get("fieldManager", "")
    if not manager:
        raise bad_request("PatchOptions: fieldManager is required for apply patch")
    config = without_nulls(_object(decode(call.body, "application/yaml")))
    there = cluster.collection(target.resource).get(target.space, target.name)
    before = there.applied if there else {}
    applied = before | {manager: config}
    if there is None:
        obj = check_object(target.resource, config)
        obj["metadata"]["name"] = target.name
        return cluster.create(target, obj, dry_run=call.dry_run, applied=applied), True
    merged = apply_config(_shown(target, there), before.get(manager, {}), config)
    obj = check_object(target.resource, merged)
    return cluster.update(target, obj, dry_run=call.dry_run, applied=applied), False


def _shown(target: Target, item: Item) -> Object:
    view = target.resource.view
    return view.show(item.object) if view else item.object


def _object(value: Any) -> Object:
    if not isinstance(value, dict):
        raise bad_request("the patch must be an object")
    return value
