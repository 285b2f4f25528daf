"""The parts of Kubernetes objects that scheduling reads.

The structs mirror the API's JSON (camelCase outside, snake_case here), ignore what they do not
know, and leave out defaults when they are written again. They are immutable: a changed object is a
new one.
"""

from moorage.models.constraints import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from moorage.models.decoding.codec import decode_node, decode_passing_pod, decode_pod, encode
from moorage.models.decoding.freezing import freeze_node, freeze_pod
from moorage.models.disks import AwsDiskSource, Disk, GceDiskSource, IscsiSource, RbdSource
from moorage.models.kinds import (
    DEVICE_CLASSES,
    ENDED_PODS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STATEFUL_SETS,
    ObjectKind,
    ObjectName,
)
from moorage.models.meta import Metadata, OwnerReference
from moorage.models.node import (
    Condition,
    ContainerImage,
    NodeAddress,
    NodeManifest,
    NodeSpec,
    NodeStatus,
    Taint,
)
from moorage.models.pod import Pod, PodStatus
from moorage.models.pod_spec import (
    ClaimSource,
    Container,
    ContainerPort,
    EphemeralSource,
    ImageSource,
    PodSpec,
    Resources,
    SchedulingGate,
    Volume,
)
from moorage.models.selectors import LabelSelector, Requirement

__all__ = [
    "DEVICE_CLASSES",
    "ENDED_PODS",
    "PERSISTENT_VOLUMES",
    "PERSISTENT_VOLUME_CLAIMS",
    "STATEFUL_SETS",
    "Affinity",
    "AwsDiskSource",
    "ClaimSource",
    "Condition",
    "Container",
    "ContainerImage",
    "ContainerPort",
    "Disk",
    "EphemeralSource",
    "GceDiskSource",
    "ImageSource",
    "IscsiSource",
    "LabelSelector",
    "Metadata",
    "NodeAddress",
    "NodeAffinity",
    "NodeManifest",
    "NodeSelector",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "ObjectKind",
    "ObjectName",
    "OwnerReference",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "RbdSource",
    "Requirement",
    "Resources",
    "SchedulingGate",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "WeightedPodAffinityTerm",
    "decode_node",
    "decode_passing_pod",
    "decode_pod",
    "encode",
    "freeze_node",
    "freeze_pod",
]
