"""Network disks that pods mount by themselves, without a PersistentVolumeClaim.

Kubernetes has moved most of these to CSI drivers, but still keeps pods apart that name the same.
"""

from typing import NamedTuple

import msgspec

from moorage.models.base import Model


class Disk(NamedTuple):
    """What must not be mounted twice on one node, unless all mounts are read-only."""

    identity: tuple[str, ...]
    read_only: bool = False


class GceDiskSource(Model, frozen=True):
    """A persistent disk of Google Compute Engine."""

    pd_name: str = ""
    read_only: bool = False

    def disks(self) -> tuple[Disk, ...]:
        """Return the disk by its name."""
        return (Disk(("gce", self.pd_name), self.read_only),)


class AwsDiskSource(Model, frozen=True):
    """A volume of Amazon's Elastic Block Store."""

    volume_id: str = msgspec.field(default="", name="volumeID")

    def disks(self) -> tuple[Disk, ...]:
        """Return the volume by its id; not even readers can share it."""
        return (Disk(("aws", self.volume_id)),)


class IscsiSource(Model, frozen=True):
    """A unit of an iSCSI target, known by the target's qualified name."""

    iqn: str = ""
    read_only: bool = False

    def disks(self) -> tuple[Disk, ...]:
        """Return the target by its name, without the unit."""
        return (Disk(("iscsi", self.iqn), self.read_only),)


class RbdSource(Model, frozen=True):
    """An image of a Ceph pool."""

    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False

    def disks(self) -> tuple[Disk, ...]:
        """Return the image once for each monitor: one in common makes it the same."""
        return tuple(Disk(("rbd", m, self.pool, self.image), self.read_only) for m in self.monitors)
