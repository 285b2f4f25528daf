"""The types of the fields that this server, or a reader of its tables, relies on.

Objects stay plain dicts; these structs only refuse what no Kubernetes client could read. Fields
that are not named here may hold anything.
"""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from sandbox.apiserver.resources.custom import Definition

_SECONDS = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
_ZONE = r"(Z|[+-]\d\d:\d\d)$"
Time = Annotated[str, Meta(pattern=rf"{_SECONDS}(\.\d+)?{_ZONE}")]
MicroTime = Annotated[str, Meta(pattern=rf"{_SECONDS}\.\d{{6}}{_ZONE}")]
"""Go's form of it has exactly six digits of a second."""

Map = dict[str, Any]
Maps = list[dict[str, Any]]
Texts = dict[str, str]
Amounts = dict[str, str | int | float]


class Metadata(Struct, rename="camel"):
    """The metadata of any object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: Time = "1970-01-01T00:00:00Z"
    labels: Texts = {}
    annotations: Texts = {}
    finalizers: list[str] = []
    owner_references: Maps = []


class AnyObject(Struct):
    """Any object."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)


class Plain(Struct):
    """An object whose spec and status are objects."""

    spec: Map = {}
    status: Map = {}


class Container(Struct, rename="camel"):
    """A container; the models know the rest of it."""

    ports: Maps = []
    image_pull_policy: str = ""


class PodSpec(Struct, rename="camel"):
    """What the models do not read of a pod's spec."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    restart_policy: str = ""
    dns_policy: str = ""
    service_account_name: str = ""
    scheduling_gates: Maps = []
    readiness_gates: Maps = []
    tolerations: Maps = []


class Condition(Struct):
    """A condition of a pod or a node."""

    type: str
    status: str = ""
    reason: str = ""


class ContainerStatus(Struct, rename="camel"):
    """How a container does."""

    ready: bool = False
    restart_count: int = 0
    state: dict[str, Map] = {}


class PodStatus(Struct, rename="camel"):
    """What is shown of a pod's status."""

    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []


class Pod(Struct):
    """A pod."""

    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class NodeStatus(Struct, rename="camel"):
    """What is shown of a node's status."""

    conditions: list[Condition] = []
    addresses: list[Texts] = []
    capacity: Amounts = {}
    allocatable: Amounts = {}
    node_info: Map = {}


class NodeSpec(Struct):
    """What the server reads of a node's spec."""

    taints: Maps = []
    unschedulable: bool = False


class Node(Struct):
    """A node."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class Series(Struct, rename="camel"):
    """How often an event happened."""

    count: int = 0
    last_observed_time: MicroTime | None = None


class Event(Struct, rename="camel"):
    """An event in either API version."""

    involved_object: Texts = {}
    regarding: Texts = {}
    source: Texts = {}
    deprecated_source: Texts = {}
    series: Series | None = None
    message: str = ""
    note: str = ""
    reason: str = ""
    type: str = ""
    action: str = ""
    count: int = 0
    deprecated_count: int = 0
    event_time: MicroTime | None = None
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    deprecated_first_timestamp: Time | None = None
    deprecated_last_timestamp: Time | None = None


class LeaseSpec(Struct, rename="camel"):
    """Who holds a lease, and since when."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    lease_transitions: int = 0
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None


class Lease(Struct):
    """A lease."""

    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


class PriorityClass(Struct, rename="camel"):
    """A priority class."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


class WorkloadSpec(Struct, rename="camel"):
    """What readers want of the spec of a Deployment, a ReplicaSet or a StatefulSet."""

    replicas: int = 0
    selector: Map = {}
    template: Map = {}
    volume_claim_templates: list[AnyObject] = []


class WorkloadStatus(Struct, rename="camel"):
    """How many pods a workload has."""

    replicas: int = 0
    ready_replicas: int = 0


class Workload(Struct):
    """A Deployment, a ReplicaSet or a StatefulSet."""

    spec: WorkloadSpec = msgspec.field(default_factory=WorkloadSpec)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)


class VolumeSpec(Struct, rename="camel"):
    """What readers want of the spec of a volume or a claim."""

    capacity: Amounts = {}
    access_modes: list[str] = []
    claim_ref: Map | None = None
    node_affinity: Map = {}
    storage_class_name: str = ""
    volume_name: str = ""


class Volume(Struct):
    """A PersistentVolume or a PersistentVolumeClaim."""

    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)
    status: Map = {}


class Secret(Struct, rename="camel"):
    """A Secret."""

    data: Texts = {}
    string_data: Texts = {}


def checks(*kinds: type[Struct]) -> Callable[[bytes], None]:
    """Return a function that raises msgspec.DecodeError if JSON is not of these shapes."""
    decoders = [msgspec.json.Decoder(kind) for kind in kinds]

    def check(text: bytes) -> None:
        for decoder in decoders:
            decoder.decode(text)

    return check


ANY = checks(AnyObject)
PLAIN = checks(Plain)
POD = checks(Pod)
NODE = checks(Node)
EVENT = checks(Event)
LEASE = checks(Lease)
PRIORITY_CLASS = checks(PriorityClass)
WORKLOAD = checks(Workload)
VOLUME = checks(Volume)
SECRET = checks(Secret)
DEFINITION = checks(Definition)
