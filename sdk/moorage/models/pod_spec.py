"""What a pod asks for, and the parts of which that consists."""

from collections.abc import Mapping

import msgspec

from moorage.models.base import NOTHING, Model
from moorage.models.constraints import Affinity, Toleration, TopologySpreadConstraint
from moorage.models.disks import AwsDiskSource, GceDiskSource, IscsiSource, RbdSource
from moorage.units.quantity import Quantity


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
    volumes: tuple[Volume, ...] = ()
