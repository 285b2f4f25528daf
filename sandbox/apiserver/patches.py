"""Carries out a PATCH: chooses the kind of patch by its media type and stores the outcome."""

from sandbox.apiserver.cluster import Cluster
from sandbox.apiserver.errors import bad_request, unsupported_media_type
from sandbox.apiserver.incoming import check_object, decode_json
from sandbox.apiserver.merging import merge
from sandbox.apiserver.requests import Call
from sandbox.apiserver.store import Item

MERGE = "application/merge-patch+json"


def patch(cluster: Cluster, call: Call) -> tuple[Item, bool]:
    """Apply a patch; return the object as stored and whether it was created.

    Raises:
        StatusError: 400, 404, 409, 415 or 422.
    """
    if call.media_type != MERGE:
        raise unsupported_media_type(call.media_type, [MERGE])
    old = cluster.get(call.target).object
    change = decode_json(call.body)
    if not isinstance(change, dict):
        raise bad_request("a merge patch must be an object")
    obj = check_object(call.target.resource, merge(old, change))
    return cluster.update(call.target, obj, dry_run=call.dry_run), False
