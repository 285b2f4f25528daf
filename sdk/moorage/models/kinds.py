"""Kinds of objects that plugins may read in addition to nodes and pods.

A plugin names them in `reads`; the gateway then follows them at the API server.
"""

import re
from typing import Final, NamedTuple

from msgspec import Struct

_API_VERSION: Final = re.compile(r"([a-z0-9.-]+/)?v[a-z0-9]+")
_PLURAL: Final = re.compile(r"[a-z][a-z0-9-]*")
_OURS: Final = ("nodes", "pods")


class ObjectKind(Struct, frozen=True, order=True):
    """A kind of objects of the Kubernetes API, a custom one perhaps.

    Attributes:
        api_version: The group and the version, as objects have them: "apps/v1", or "v1" for the
            core group.
        plural: The name in URLs and in RBAC: "statefulsets".
        field_selector: Only the objects that it selects, as `kubectl --field-selector` has it.
        optional: Whether an API server that does not serve the kind simply has no such objects.
            Otherwise the gateway is not ready until the kind is served.
    """

    api_version: str
    plural: str
    field_selector: str = ""
    optional: bool = False

    def __post_init__(self) -> None:
        """Refuse what no kind is called.

        Raises:
            ValueError: Is it perhaps the singular in CamelCase?
        """
        if not _API_VERSION.fullmatch(self.api_version):
            raise ValueError(
                f"{self.api_version!r} is no apiVersion: write it as objects do, "
                'such as "apps/v1", or "v1" for the core group'
            )
        if not _PLURAL.fullmatch(self.plural):
            raise ValueError(
                f"{self.plural!r} is no plural: write it as in URLs, such as 'statefulsets'"
            )
        if not self.group and self.plural in _OURS and not self.field_selector:
            raise ValueError(f"{self.plural} are always there: plugins get them as `nodes`")

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def path(self) -> str:
        """The path of all objects of this kind at the API server."""
        root = "apis" if self.group else "api"
        return f"/{root}/{self.api_version}/{self.plural}"

    def __str__(self) -> str:
        """Return the name that kubectl and RBAC messages use: "statefulsets.apps"."""
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        return f"{name}[{self.field_selector}]" if self.field_selector else name


class ObjectName(NamedTuple):
    """Which object of which kind; the namespace is empty where objects have none."""

    kind: ObjectKind
    namespace: str
    name: str


STATEFUL_SETS: Final = ObjectKind("apps/v1", "statefulsets")
PERSISTENT_VOLUMES: Final = ObjectKind("v1", "persistentvolumes")
PERSISTENT_VOLUME_CLAIMS: Final = ObjectKind("v1", "persistentvolumeclaims")
DEVICE_CLASSES: Final = ObjectKind("resource.k8s.io/v1", "deviceclasses", optional=True)
"""Kubernetes has them from 1.34 on."""

ENDED_PODS: Final = ObjectKind(
    "v1", "pods", "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"
)
"""Pods that succeeded or failed, until they are deleted; read them as `Pod`."""
