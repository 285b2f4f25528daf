"""What a pod asks for: containers, where it may and would rather run, and what it mounts.

Kubernetes has moved most network disks to CSI drivers, but still keeps pods apart that name the
same without a PersistentVolumeClaim.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from moorage.models.base import NOTHING, LabelSelector, Model, Requirement
from moorage.units.quantity import Quantity


class Toleration(Model, frozen=True):
    """Lets a pod onto nodes with matching taints. An empty key with Exists matches every taint."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorTerm(Model, frozen=True):
    """Conditions that must all hold. A term without conditions matches no node."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(Model, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Model, frozen=True):
    """A wish with its weight, 1..100."""

    weight: int = 0
    preference: NodeSelectorTerm = msgspec.field(default_factory=NodeSelectorTerm)


class NodeAffinitySpec(Model, frozen=True):
    """Which nodes a pod requires and prefers."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Model, frozen=True):
    """Other pods, and the topology within which they count as near."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Model, frozen=True):
    """A wish with its weight, 1..100."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = msgspec.field(default_factory=PodAffinityTerm)


class PodAffinity(Model, frozen=True):
    """Which pods a pod requires and prefers near it, or far from it."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Model, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinitySpec | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Model, frozen=True):
    """How evenly matching pods are to be spread over the values of a node label."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


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


class ContainerPort(Model, frozen=True):
    """A port of a container; a `host_port` of 0 takes none on the node."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Resources(Model, frozen=True):
    """Quantities by resource name."""

    requests: Mapping[str, Quantity] = NOTHING
    limits: Mapping[str, Quantity] = NOTHING


class Container(Model, frozen=True):
    """A container, or an init container; one with `restart_policy` "Always" is a sidecar."""

    name: str = ""
    image: str = ""
    resources: Resources = msgspec.field(default_factory=Resources)
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class ClaimSource(Model, frozen=True):
    """A PersistentVolumeClaim in the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class ImageSource(Model, frozen=True):
    """An image mounted as a volume."""

    reference: str = ""


class EphemeralSource(Model, frozen=True):
    """A PersistentVolumeClaim that is made for the pod; its name is "POD-VOLUME"."""


class Volume(Model, frozen=True):
    """A volume. Decoding drops those of which scheduling reads nothing, such as ConfigMaps."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    image: ImageSource | None = None
    gce_persistent_disk: GceDiskSource | None = None
    aws_elastic_block_store: AwsDiskSource | None = None
    iscsi: IscsiSource | None = None
    rbd: RbdSource | None = None

    @property
    def disk_source(self) -> GceDiskSource | AwsDiskSource | IscsiSource | RbdSource | None:
        """The network disk that it is, if it is one."""
        return self.gce_persistent_disk or self.aws_elastic_block_store or self.iscsi or self.rbd


class SchedulingGate(Model, frozen=True):
    """Keeps a pod from being scheduled until it is removed."""

    name: str = ""


class SchedulingGroup(Model, frozen=True):
    """The PodGroup that the pod belongs to, in its namespace."""

    pod_group_name: str = ""


class PodSpec(Model, frozen=True):
    """What the pod asks for."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = ""
    host_network: bool = False
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: Resources = msgspec.field(default_factory=Resources)
    overhead: Mapping[str, Quantity] = NOTHING
    node_selector: Mapping[str, str] = NOTHING
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    volumes: tuple[Volume, ...] = ()
