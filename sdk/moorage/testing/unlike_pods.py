"""Pods that differ from others everywhere; see `moorage.testing.locality`."""

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

_TEXTS: Final = {"example.com/stranger": "yes"}
_EVERYWHERE: Final = Toleration(operator="Exists")
_AMOUNTS: Final = Resources(
    requests={"cpu": "777m", "memory": "7Gi"}, limits={"cpu": "7777m", "memory": "77Gi"}
)
_PORTS: Final = (ContainerPort(container_port=80, host_port=80),)
_MAIN: Final = Container(
    name="stranger", image="example.com/stranger:7", resources=_AMOUNTS, ports=_PORTS
)
_SIDECAR: Final = Container(
    name="beside",
    image="example.com/beside:7",
    resources=_AMOUNTS,
    ports=(ContainerPort(container_port=443, host_port=443),),
    restart_policy="Always",
)
_NOWHERE: Final = NodeSelectorTerm(
    match_expressions=(Requirement(key="stranger", operator="Exists"),)
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
    Volume(name="claim", persistent_volume_claim=ClaimSource(claim_name="stranger")),
    Volume(name="image", image=ImageSource(reference="example.com/stranger:7")),
    Volume(name="gce", gce_persistent_disk=GceDiskSource(pd_name="stranger")),
    Volume(name="aws", aws_elastic_block_store=AwsDiskSource(volume_id="stranger")),
    Volume(name="iscsi", iscsi=IscsiSource(iqn="stranger")),
    Volume(name="rbd", rbd=RbdSource(monitors=("stranger",), image="stranger")),
)
_SPREAD: Final = TopologySpreadConstraint(
    max_skew=7, topology_key="kubernetes.io/hostname", label_selector=LabelSelector()
)

BUSY: Final = Pod(
    metadata=Metadata(
        namespace="stranger",
        labels=_TEXTS,
        annotations=_TEXTS,
        owner_references=(OwnerReference(kind="StatefulSet", name="stranger", controller=True),),
    ),
    spec=PodSpec(
        node_name="stranger",
        scheduler_name="stranger",
        priority=7,
        priority_class_name="stranger",
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
        scheduling_gates=(SchedulingGate(name="example.com/stranger"),),
        volumes=_VOLUMES,
    ),
)
"""A pod that says something in every field that there is."""


def strangers() -> Iterator[Pod]:
    """Yield pods of which one at least differs from any pod in each field."""
    yield BUSY
    yield Pod(metadata=Metadata(namespace="empty"))
