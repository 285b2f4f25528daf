"""What must be true of the stored object for a write to go on: name, UID and version."""

from dataclasses import dataclass

from sandbox.apiserver.errors import bad_request, conflict
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
    propagation: str = "Background"
    """What becomes of dependents: Background and Foreground delete them, Orphan leaves them."""
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
