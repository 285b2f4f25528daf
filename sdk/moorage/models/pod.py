"""The pod object."""

from collections.abc import Mapping

import msgspec

from moorage.models.base import Metadata, Model, OwnerReference
from moorage.models.pod_spec import ContainerPort, Disk, PodSpec, Volume
from moorage.models.requests import Counted, Demands, demands_of


class PodStatus(Model, frozen=True):
    """How far the pod is.

    Attributes:
        phase: The phase.
        nominated_node_name: The node on which pods are evicted for it, or which it is to get.
        start_time: Of a pod on a node, when it was scheduled; if only that is known, when the node
            has taken it.
        counted: What it counts on its node, if that is not what its spec says: it is resized.
        reason: Of a pod that has ended, why, such as "Evicted".
    """

    phase: str = ""
    nominated_node_name: str = ""
    start_time: str = ""
    counted: Counted | None = None
    reason: str = ""


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
        plus overhead, as kube-scheduler computes it. On a node, while the pod is resized in place,
        also what the node has set aside for it.
        """
        if (counted := self.status.counted) is not None:
            return counted.requests
        spec, demands = demands_of.latest  # looked at here, since plugins ask for each node
        return (demands if spec is self.spec else demands_of(self.spec)).requests

    @property
    def nonzero_requests(self) -> Mapping[str, int]:
        """The same for "cpu" and "memory" only, with defaults for containers that name neither.

        kube-scheduler scores nodes by these, so that pods without requests still count.
        """
        if (counted := self.status.counted) is not None:
            return counted.nonzero_requests
        spec, demands = demands_of.latest
        return (demands if spec is self.spec else demands_of(self.spec)).nonzero_requests

    @property
    def host_ports(self) -> tuple[ContainerPort, ...]:
        """The ports that the pod takes on its node."""
        return demands_of(self.spec).host_ports

    @property
    def demands(self) -> Demands:
        """Requests, requests with defaults, and host ports at once."""
        demands, counted = demands_of(self.spec), self.status.counted
        if counted is None:
            return demands
        return Demands(counted.requests, counted.nonzero_requests, demands.host_ports)

    def _claim_name(self, volume: Volume) -> str:
        if volume.ephemeral is not None:
            return f"{self.name}-{volume.name}"
        claim = volume.persistent_volume_claim
        return claim.claim_name if claim else ""
