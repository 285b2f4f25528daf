"""One node of a snapshot, as per-node plugins see it."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from moorage.models import ContainerImage, NodeManifest, Pod, Taint
from moorage.models.base import read_only
from moorage.snapshot.columns.resources import ResourceColumns


class PodsByRow(Protocol):
    """The part of a snapshot that knows the pods on each node."""

    requested: ResourceColumns

    def pods_at(self, row: int) -> Iterable[Pod]:
        """Return the pods on the node of *row*."""


class Node:
    """A node and the pods on it, bound or assumed. Valid only in the cycle it was handed out in."""

    __slots__ = ("_requested", "_snapshot", "manifest", "row")

    def __init__(self, snapshot: PodsByRow, row: int, manifest: NodeManifest) -> None:
        self._snapshot = snapshot
        self.row = row
        self.manifest = manifest
        self._requested: Mapping[str, int] | None = None

    def __repr__(self) -> str:
        return f"Node({self.name!r})"

    @property
    def name(self) -> str:
        """The node's name."""
        return self.manifest.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.manifest.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations."""
        return self.manifest.metadata.annotations

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""
        return self.manifest.spec.unschedulable

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The node's taints."""
        return self.manifest.spec.taints

    @property
    def images(self) -> tuple[ContainerImage, ...]:
        """The images that the node reports; the kubelet leaves out all but the largest 50."""
        return self.manifest.status.images

    @property
    def allocatable(self) -> Mapping[str, int]:
        """What pods may use: millicores of "cpu", bytes or counts of everything else."""
        return self.manifest.allocatable

    @property
    def requested(self) -> Mapping[str, int]:
        """What the pods on the node ask for, in the units of `allocatable`, with "pods"."""
        requested = self._requested
        if requested is None:
            requested = self._requested = read_only(self._snapshot.requested.at(self.row))
        return requested

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods on the node, bound or assumed."""
        return tuple(self._snapshot.pods_at(self.row))

    def pods_changed(self) -> None:
        """Read what the pods on the node request again when it is asked for; for the snapshot."""
        self._requested = None
