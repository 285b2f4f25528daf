"""What is served: one row per resource; a new resource is a new row.

A row says how the resource is addressed, which rules its objects obey (`rules`), what can be
selected on (`fields`: path to the value of a missing field) and what kubectl shows (`columns`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sandbox.apiserver import (
    columns,
    eventviews,
    namespaces,
    nodes,
    pods,
    priorities,
    reviews,
    shapes,
    workloads,
)
from sandbox.apiserver.eventviews import View
from sandbox.apiserver.rules import PLAIN, Rules
from sandbox.apiserver.tables import Column

OBJECT_FIELDS = {"metadata.name": "", "metadata.namespace": ""}
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
EACH_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of object under one API version."""

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: Mapping[str, str] = field(default_factory=dict)
    """Name to the kind that it takes."""
    fields: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[Column, ...] = columns.OBJECT
    rules: Rules = PLAIN
    view: View | None = None
    """How objects look in this API version, if they are stored in another one."""
    storage: str = ""
    """Shared by resources that show the same objects; by default GROUP/PLURAL."""

    @property
    def api_version(self) -> str:
        """The value of the objects' apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def stored_as(self) -> str:
        """The name of the collection that holds the objects."""
        return self.storage or f"{self.group}/{self.plural}"

    @property
    def singular(self) -> str:
        """The name that people type."""
        return self.kind.lower()


RESOURCES = (
    Resource(
        plural="nodes",
        kind="Node",
        namespaced=False,
        short_names=("no",),
        subresources={"status": "Node"},
        fields=nodes.FIELDS,
        columns=columns.NODES,
        rules=nodes.RULES,
    ),
    Resource(
        plural="pods",
        kind="Pod",
        short_names=("po",),
        categories=("all",),
        subresources={"status": "Pod", "binding": "Binding", "eviction": "Eviction"},
        fields=pods.FIELDS,
        columns=columns.PODS,
        rules=pods.RULES,
    ),
    Resource(plural="bindings", kind="Binding", verbs=("create",), storage="none"),
    Resource(
        plural="namespaces",
        kind="Namespace",
        namespaced=False,
        verbs=EACH_VERBS,
        short_names=("ns",),
        subresources={"status": "Namespace"},
        fields={"status.phase": ""},
        columns=columns.NAMESPACES,
        rules=namespaces.RULES,
    ),
    Resource(
        plural="events",
        kind="Event",
        short_names=("ev",),
        fields=eventviews.CORE_FIELDS,
        columns=columns.EVENTS,
        rules=eventviews.CORE_RULES,
        storage="events",
    ),
    Resource(
        group="events.k8s.io",
        plural="events",
        kind="Event",
        short_names=("ev",),
        fields=eventviews.GROUP_FIELDS,
        columns=columns.EVENTS,
        rules=eventviews.GROUP_RULES,
        view=eventviews.GROUP_VIEW,
        storage="events",
    ),
    Resource(
        group="coordination.k8s.io",
        plural="leases",
        kind="Lease",
        columns=columns.LEASES,
        rules=Rules(shape=shapes.checks(shapes.Lease)),
    ),
    Resource(
        group="scheduling.k8s.io",
        plural="priorityclasses",
        kind="PriorityClass",
        namespaced=False,
        short_names=("pc",),
        columns=columns.PRIORITY_CLASSES,
        rules=priorities.RULES,
    ),
    Resource(
        group="apps",
        plural="statefulsets",
        kind="StatefulSet",
        short_names=("sts",),
        categories=("all",),
        subresources={"status": "StatefulSet"},
        columns=columns.STATEFUL_SETS,
        rules=workloads.STATEFUL_SETS,
    ),
    Resource(
        plural="persistentvolumes",
        kind="PersistentVolume",
        namespaced=False,
        short_names=("pv",),
        subresources={"status": "PersistentVolume"},
        columns=columns.VOLUMES,
        rules=workloads.VOLUMES,
    ),
    Resource(
        plural="persistentvolumeclaims",
        kind="PersistentVolumeClaim",
        short_names=("pvc",),
        subresources={"status": "PersistentVolumeClaim"},
        columns=columns.CLAIMS,
        rules=workloads.CLAIMS,
    ),
    Resource(
        group="authorization.k8s.io",
        plural="selfsubjectaccessreviews",
        kind="SelfSubjectAccessReview",
        namespaced=False,
        verbs=("create",),
        rules=reviews.RULES,
        storage="none",
    ),
)

BY_PATH = {(r.group, r.version, r.plural): r for r in RESOURCES}
"""The rows by group, version and plural."""

BY_STORAGE = {r.stored_as: r for r in reversed(RESOURCES)}
"""The row in whose form a storage keeps its objects."""
