"""The kinds that controllers read and write, and where the API server keeps them."""

from typing import Final

from sandbox.apiserver.resources.builtin import BUILT_IN
from sandbox.apiserver.resources.resource import Object, Resource

_VERSIONS: Final = {
    "Pod": "v1",
    "Node": "v1",
    "Event": "v1",
    "PersistentVolumeClaim": "v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
}

RESOURCES: Final[dict[str, Resource]] = {
    row.kind: row for row in BUILT_IN if _VERSIONS.get(row.kind) == row.api_version
}
"""The resource of each kind."""

NOT_MANAGED: Final = "sandbox.moorage.io/not-managed"
"""The annotation of a workload whose pods somebody else makes."""


def controller_of(obj: Object) -> Object | None:
    """Return the owner reference of the object's controller, if it has one."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), None)
