"""Object metadata."""

from collections.abc import Mapping

from moorage.models.base import NOTHING, Model


class OwnerReference(Model, frozen=True):
    """The object that created this one."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class Metadata(Model, frozen=True):
    """What every Kubernetes object carries; resource versions are left out, not being content."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Mapping[str, str] = NOTHING
    annotations: Mapping[str, str] = NOTHING
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
