"""What must be true of the stored object for a write to go on: name, UID and version."""

from dataclasses import dataclass

from sandbox.apiserver.errors import StatusError, bad_request, conflict
from sandbox.apiserver.resources.paths import Target
from sandbox.apiserver.resources.resource import Object

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What a DELETE asks for beyond the object."""

    uid: str = ""
    """Delete only the object with this UID."""
    resource_version: str = ""
    """Delete only this version."""
    dry_run: bool = False


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
    check_uid(target, given.get("uid", ""), there)
    version = given.get("resourceVersion") or there["resourceVersion"]
    if version != there["resourceVersion"]:
        raise _conflict(target, MODIFIED)


def check_deletion(target: Target, deletion: Deletion, there: Object) -> None:
    """Check the preconditions of a DELETE.

    Raises:
        StatusError: 409.
    """
    check_uid(target, deletion.uid, there)
    check_version(target, deletion.resource_version, there)


def check_uid(target: Target, uid: str, there: Object) -> None:
    """Check that the stored object has this UID; no UID is any.

    Raises:
        StatusError: 409.
    """
    if uid and uid != there["uid"]:
        found = there["uid"]
        raise _failed(target, f"UID in precondition: {uid}, UID in object meta: {found}")


def check_version(target: Target, version: str, there: Object) -> None:
    """Check that the stored object is this version; none is any.

    Raises:
        StatusError: 409.
    """
    if version and version != there["resourceVersion"]:
        raise _failed(
            target,
            f"ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {there['resourceVersion']}",
        )


def _failed(target: Target, what: str) -> StatusError:
    parts = ("registry", target.resource.plural, target.space, target.name)
    key = "".join(f"/{part}" for part in parts if part)
    return _conflict(
        target,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {what}",
    )


def _conflict(target: Target, why: str) -> StatusError:
    return conflict(target.resource.plural, target.name, why, group=target.resource.group)
