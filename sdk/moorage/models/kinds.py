"""Kinds of objects that plugins may read in addition to nodes and pods, and which of them.

A plugin names them in `reads`; the gateway then follows them at the API server.
"""

import re
from typing import Final, NamedTuple

from msgspec import Struct

_API_VERSION: Final = re.compile(r"([a-z0-9.-]+/)?v[a-z0-9]+")
_PLURAL: Final = re.compile(r"[a-z][a-z0-9-]*")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_OURS: Final = ("nodes", "pods")


class ObjectKind(Struct, frozen=True, order=True):
    """A kind of objects of the Kubernetes API, a custom one perhaps, and which of them.

    The same kind with another namespace or selector is followed by a watch of its own.

    Attributes:
        api_version: The group and the version, as objects have them: "apps/v1", or "v1" for the
            core group.
        plural: The name in URLs and in RBAC: "statefulsets".
        namespace: Only the objects in it; empty means all namespaces.
        label_selector: Only the objects that it selects, as `kubectl --selector` has it.
        field_selector: Only the objects that it selects, as `kubectl --field-selector` has it. API
            servers know metadata.name and metadata.namespace of every kind, and few others.
        optional: Whether an API server that does not serve the kind simply has no such objects.
            Otherwise the gateway is not ready until the kind is served.
    """

    api_version: str
    plural: str
    namespace: str = ""
    label_selector: str = ""
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
        if self.namespace and not _NAMESPACE.fullmatch(self.namespace):
            raise ValueError(
                f"{self.namespace!r} cannot be a namespace: one name, of small letters, digits "
                'and "-"; without a namespace, all are meant'
            )
        if not self.group and self.plural in _OURS and not self.selection:
            raise ValueError(f"{self.plural} are always there: plugins get them as `nodes`")

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def path(self) -> str:
        """The path of these objects at the API server, without selectors."""
        root = "apis" if self.group else "api"
        scope = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"/{root}/{self.api_version}/{scope}{self.plural}"

    @property
    def query(self) -> dict[str, str]:
        """The selectors as the API server has them in URLs."""
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: selector for name, selector in selectors.items() if selector}

    @property
    def selection(self) -> str:
        """Which objects of the kind are meant, as options of kubectl; empty if all are."""
        options = {
            "-n": self.namespace,
            "-l": self.label_selector,
            "--field-selector": self.field_selector,
        }
        return " ".join(f"{option} {value}" for option, value in options.items() if value)

    def __str__(self) -> str:
        """Return the name that kubectl and RBAC messages use, and what is selected.

        Such as "statefulsets.apps", or "configmaps[-n prices -l tier=spot]".
        """
        name = f"{self.plural}.{self.group}" if self.group else self.plural
        return f"{name}[{self.selection}]" if self.selection else name


class ObjectName(NamedTuple):
    """Which object of which kind; the namespace is empty where objects have none."""

    kind: ObjectKind
    namespace: str
    name: str


STATEFUL_SETS: Final = ObjectKind("apps/v1", "statefulsets")
"""The StatefulSets of all namespaces."""

PERSISTENT_VOLUMES: Final = ObjectKind("v1", "persistentvolumes")
"""The PersistentVolumes of the cluster."""

PERSISTENT_VOLUME_CLAIMS: Final = ObjectKind("v1", "persistentvolumeclaims")
"""The PersistentVolumeClaims of all namespaces."""

DEVICE_CLASSES: Final = ObjectKind("resource.k8s.io/v1", "deviceclasses", optional=True)
"""The DeviceClasses of the cluster, which Kubernetes has from 1.34 on."""

ENDED_PODS: Final = ObjectKind(
    "v1",
    "pods",
    field_selector="status.phase!=Pending,status.phase!=Running,status.phase!=Unknown",
)
"""Pods that succeeded or failed, until they are deleted; read them as `Pod`."""
