"""One node of a snapshot, as per-node plugins see it."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NoReturn, Protocol, cast

from moorage.models import ContainerImage, NodeManifest, Pod, Taint
from moorage.models.base import ReadOnlyDict
from moorage.snapshot.columns.resources import ResourceColumns


class PodsByRow(Protocol):
    """The part of a snapshot that knows the pods on each node."""

    requested: ResourceColumns

    def pods_at(self, row: int) -> Iterable[Pod]:
        """Return the pods on the node of *row*."""


class Node:
    """A node and the pods on it, bound or assumed. Valid only in the cycle it was handed out in.

    Plugins read these attributes thousands of times in a cycle: they are there, not computed.

    Attributes:
        row: The node's number in the snapshot.
        manifest: The node as the API server has it.
        name: The node's name.
        labels: The node's labels.
        annotations: The node's annotations.
        unschedulable: Whether the node is cordoned.
        taints: The node's taints.
        images: The images that the node reports; the kubelet leaves out all but the largest 50.
        allocatable: What pods may use: millicores of "cpu", bytes or counts of everything else.
        requested: What the pods on the node ask for, in the units of `allocatable`, with "pods".
    """

    __slots__ = (
        "_snapshot",
        "allocatable",
        "annotations",
        "images",
        "labels",
        "manifest",
        "name",
        "requested",
        "row",
        "taints",
        "unschedulable",
    )

    _snapshot: PodsByRow
    row: int
    manifest: NodeManifest
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    unschedulable: bool
    taints: tuple[Taint, ...]
    images: tuple[ContainerImage, ...]
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]

    def __init__(
        self,
        snapshot: PodsByRow,
        row: int,
        manifest: NodeManifest,
        requested: Mapping[str, int] | None = None,
    ) -> None:
        set_: Callable[[str, object], None] = partial(object.__setattr__, self)
        set_("_snapshot", snapshot)
        set_("row", row)
        set_("manifest", manifest)
        metadata, spec = manifest.metadata, manifest.spec
        set_("name", metadata.name)
        set_("labels", metadata.labels)
        set_("annotations", metadata.annotations)
        set_("unschedulable", spec.unschedulable)
        set_("taints", spec.taints)
        set_("images", manifest.status.images)
        set_("allocatable", manifest.allocatable)
        set_("requested", ReadOnlyDict[str, int]() if requested is None else requested)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a node's {name} cannot be set: all plugins share the node")

    def __repr__(self) -> str:
        return f"Node({self.name!r})"

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods on the node, bound or assumed."""
        return tuple(self._snapshot.pods_at(self.row))

    def pods_changed(self, resources: Iterable[str]) -> None:
        """Read what the pods on the node request of some resources; for the snapshot."""
        requested = cast("dict[str, int]", self.requested)
        for resource in resources:
            if amount := self._snapshot.requested.amount(resource, self.row):
                dict.__setitem__(requested, resource, amount)
            else:
                dict.pop(requested, resource, None)
