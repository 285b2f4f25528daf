"""Pods that differ from others in every field; see `moorage.testing.locality`."""

from collections.abc import Iterator
from typing import Final

from moorage.models import (
    Affinity,
    AwsDiskSource,
    ClaimSource,
    Container,
    ContainerPort,
    GceDiskSource,
    ImageSource,
    IscsiSource,
    LabelSelector,
    Metadata,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    OwnerReference,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PreferredSchedulingTerm,
    RbdSource,
    Requirement,
    Resources,
    SchedulingGate,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)

_TEXTS: Final = {"example.com/unlike": "yes"}
_EVERYWHERE: Final = Toleration(operator="Exists")
_AMOUNTS: Final = Resources(
    requests={"cpu": "777m", "memory": "7Gi"}, limits={"cpu": "7777m", "memory": "77Gi"}
)
_PORTS: Final = (ContainerPort(container_port=80, host_port=80),)
_MAIN: Final = Container(
    name="unlike", image="example.com/unlike:7", resources=_AMOUNTS, ports=_PORTS
)
_SIDECAR: Final = Container(
    name="beside",
    image="example.com/beside:7",
    resources=_AMOUNTS,
    ports=(ContainerPort(container_port=443, host_port=443),),
    restart_policy="Always",
)
_NOWHERE: Final = NodeSelectorTerm(
    match_expressions=(Requirement(key="unlike", operator="Exists"),)
)
_SELF: Final = PodAffinityTerm(
    label_selector=LabelSelector(match_labels=_TEXTS), topology_key="kubernetes.io/hostname"
)
_NEAR: Final = PodAffinity(
    required=(_SELF,), preferred=(WeightedPodAffinityTerm(weight=7, pod_affinity_term=_SELF),)
)
_AFFINITY: Final = Affinity(
    node_affinity=NodeAffinity(
        required=NodeSelector(node_selector_terms=(_NOWHERE,)),
        preferred=(PreferredSchedulingTerm(weight=7, preference=_NOWHERE),),
    ),
    pod_affinity=_NEAR,
    pod_anti_affinity=_NEAR,
)
_VOLUMES: Final = (
    Volume(name="claim", persistent_volume_claim=ClaimSource(claim_name="unlike")),
    Volume(name="image", image=ImageSource(reference="example.com/unlike:7")),
    Volume(name="gce", gce_persistent_disk=GceDiskSource(pd_name="unlike")),
    Volume(name="aws", aws_elastic_block_store=AwsDiskSource(volume_id="unlike")),
    Volume(name="iscsi", iscsi=IscsiSource(iqn="unlike")),
    Volume(name="rbd", rbd=RbdSource(monitors=("unlike",), image="unlike")),
)
_SPREAD: Final = TopologySpreadConstraint(
    max_skew=7, topology_key="kubernetes.io/hostname", label_selector=LabelSelector()
)

FULLY_SPECIFIED_POD: Final = Pod(
    metadata=Metadata(
        namespace="unlike",
        labels=_TEXTS,
        annotations=_TEXTS,
        owner_references=(OwnerReference(kind="StatefulSet", name="unlike", controller=True),),
    ),
    spec=PodSpec(
        node_name="unlike",
        scheduler_name="unlike",
        priority=7,
        priority_class_name="unlike",
        preemption_policy="Never",
        host_network=True,
        containers=(_MAIN,),
        init_containers=(_SIDECAR,),
        resources=_AMOUNTS,
        overhead={"cpu": "77m", "memory": "77Mi"},
        node_selector=_TEXTS,
        affinity=_AFFINITY,
        tolerations=(_EVERYWHERE,),
        topology_spread_constraints=(_SPREAD,),
        scheduling_gates=(SchedulingGate(name="example.com/unlike"),),
        volumes=_VOLUMES,
    ),
)
"""A pod with a value in every field."""


def unlike_pods() -> Iterator[Pod]:
    """Yield two pods, so that any pod differs from one of them in each field."""
    yield FULLY_SPECIFIED_POD
    yield Pod(metadata=Metadata(namespace="empty"))
