"""The metadata that the server writes, what an update may not change, and what a write presumes."""

import uuid
from copy import deepcopy

from sandbox.apiserver.errors import bad_request, conflict
from sandbox.apiserver.kinds import names
from sandbox.apiserver.resources.paths import Target
from sandbox.apiserver.resources.resource import Object
from sandbox.apiserver.store.store import Collection, now, stamp

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def check_identity(target: Target, given: Object, there: Object) -> None:
    """Check that the metadata of an update means the stored object, in its present version.

    Raises:
        StatusError: 400 or 409.
    """
    name = given.get("name", target.name)
    if name != target.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
    check_preconditions(target, there, uid=given.get("uid", ""))
    if given.get("resourceVersion") not in (None, "", there["resourceVersion"]):
        group = target.resource.group
        raise conflict(target.resource.plural, target.name, MODIFIED, group=group)


def check_preconditions(target: Target, there: Object, *, uid: str, version: str = "") -> None:
    """Check that the stored object has this UID and version; an empty one is any.

    Raises:
        StatusError: 409.
    """
    wanted = {"UID": (uid, there["uid"]), "ResourceVersion": (version, there["resourceVersion"])}
    for name, (expected, found) in wanted.items():
        if expected and expected != found:
            parts = ("registry", target.resource.plural, target.space, target.name)
            key = "".join(f"/{part}" for part in parts if part)
            why = (
                f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
                f"AdditionalErrorMsg: Precondition failed: {name} in precondition: {expected}, "
                f"{name} in object meta: {found}"
            )
            group = target.resource.group
            raise conflict(target.resource.plural, target.name, why, group=group)


_SERVER_OWNED = ("uid", "creationTimestamp", "generation", "deletionTimestamp",
                 "deletionGracePeriodSeconds", "resourceVersion", "namespace", "name",
                 "generateName")  # fmt: skip
_WITH_STATUS = ("kind", "apiVersion", "metadata", "status")
_ATTEMPTS = 8


def complete_new(target: Target, obj: Object, collection: Collection) -> Object:
    """Give a new object the metadata that every object has, and return that metadata.

    Raises:
        StatusError: 400, the object names another namespace than the request.
    """
    metadata: Object = obj["metadata"]
    given = metadata.get("namespace", target.space)
    if given != target.space:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the "
            f"request ({given} and {target.space})"
        )
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = _free_name(collection, target.space, metadata["generateName"])
    for key in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(key, None)
    if target.namespace is not None:
        metadata["namespace"] = target.namespace
    metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": stamp(now()), "generation": 1}
    return metadata


def merge_update(target: Target, obj: Object, old: Object) -> Object:
    """Return the new object with what the server owns, or this path may not change, from *old*."""
    kept = {key: old["metadata"][key] for key in _SERVER_OWNED if key in old["metadata"]}
    given = {key: value for key, value in obj["metadata"].items() if key not in _SERVER_OWNED}
    new = obj | {"metadata": given | kept}
    if target.resource.has_status:
        if target.subresource == "status":
            # All but the status stays, not only the spec: some kinds have no spec.
            new = {key: new[key] for key in _WITH_STATUS if key in new}
            other = [key for key in old if key not in ("status", *new)]
        else:
            new.pop("status", None)
            other = ["status"]
        # Copies, because the hooks may fill in defaults.
        new |= {key: deepcopy(old[key]) for key in other if key in old}
    return new


def _free_name(collection: Collection, namespace: str, prefix: str) -> str:
    for _ in range(_ATTEMPTS):
        name = names.generate(prefix)
        if collection.get(namespace, name) is None:
            break
    return name
