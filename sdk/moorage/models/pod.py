"""The pod object."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from moorage.models.base import Model
from moorage.models.constraints import Affinity, Toleration, TopologySpreadConstraint
from moorage.models.disks import AwsDiskSource, Disk, GceDiskSource, IscsiSource, RbdSource
from moorage.models.interning import Remembered
from moorage.models.meta import Metadata, OwnerReference
from moorage.models.requests import nonzero_requests, pod_requests
from moorage.units.quantity import Quantity


class ContainerPort(Model, frozen=True):
    """A port of a container; a `host_port` of 0 takes none on the node."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Resources(Model, frozen=True):
    """Quantities by resource name."""

    requests: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    limits: Mapping[str, Quantity] = msgspec.field(default_factory=dict)


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
    overhead: Mapping[str, Quantity] = msgspec.field(default_factory=dict)
    node_selector: Mapping[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()


class PodStatus(Model, frozen=True):
    """How far the pod is."""

    phase: str = ""
    nominated_node_name: str = ""


class Demands(NamedTuple):
    """What the containers of a pod need of its node; see the properties of `Pod`."""

    requests: Mapping[str, int]
    nonzero_requests: Mapping[str, int]
    host_ports: tuple[ContainerPort, ...]


class Pod(Model, frozen=True):
    """A pod."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.metadata.namespace or "default"

    @property
    def uid(self) -> str:
        """The pod's uid, its identity."""
        return self.metadata.uid

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The pod's annotations."""
        return self.metadata.annotations

    @property
    def owner(self) -> OwnerReference | None:
        """The controller that manages the pod, such as its ReplicaSet."""
        return next((o for o in self.metadata.owner_references if o.controller), None)

    @property
    def is_terminating(self) -> bool:
        """Whether the pod is being deleted; until it is gone it still uses its node."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def is_terminal(self) -> bool:
        """Whether the pod has ended and no longer uses its node."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def claim_names(self) -> tuple[str, ...]:
        """The names of the PersistentVolumeClaims that the pod mounts, in order."""
        return tuple(filter(None, map(self._claim_name, self.spec.volumes)))

    @property
    def disks(self) -> tuple[Disk, ...]:
        """The network disks that the pod mounts without claims."""
        if not self.spec.volumes:
            return ()
        sources = (volume.disk_source for volume in self.spec.volumes)
        return tuple(disk for source in sources if source for disk in source.disks())

    @property
    def requests(self) -> Mapping[str, int]:
        """What the pod needs: millicores of "cpu", bytes or counts of everything else.

        The larger of the running containers and each init container with the sidecars before it,
        plus overhead, as kube-scheduler reckons.
        """
        return _demands(self.spec).requests

    @property
    def nonzero_requests(self) -> Mapping[str, int]:
        """The same for "cpu" and "memory" only, with defaults for containers that name neither.

        kube-scheduler scores nodes by these, so that pods without requests still count.
        """
        return _demands(self.spec).nonzero_requests

    @property
    def host_ports(self) -> tuple[ContainerPort, ...]:
        """The ports that the pod takes on its node."""
        return _demands(self.spec).host_ports

    def _claim_name(self, volume: Volume) -> str:
        if volume.ephemeral is not None:
            return f"{self.name}-{volume.name}"
        claim = volume.persistent_volume_claim
        return claim.claim_name if claim else ""


class _KnownDemands:
    """By all that they depend on: the pods of a workload need the same.

    A cycle asks for its pod's many times, so the latest are at hand. Pods do not keep their own:
    for 150,000 of them that took 35 MB, and as many objects for the garbage collector.
    """

    def __init__(self) -> None:
        self._by_parts: Remembered[Demands] = Remembered()
        self._latest: tuple[PodSpec | None, Demands] = (None, Demands({}, {}, ()))

    def __call__(self, spec: PodSpec) -> Demands:
        latest, demands = self._latest
        if latest is not spec:
            parts = (spec.containers, spec.init_containers, spec.resources, spec.overhead)
            demands = self._by_parts.get(parts, lambda: _demands_of(spec))
            self._latest = (spec, demands)
        return demands


def _demands_of(spec: PodSpec) -> Demands:
    sidecars = (c for c in spec.init_containers if c.restart_policy == "Always")
    running = (*spec.containers, *sidecars)
    ports = tuple(port for c in running for port in c.ports if port.host_port > 0)
    return Demands(pod_requests(spec), nonzero_requests(spec), ports)


_demands = _KnownDemands()
