"""The two kinds of objects that the gateway follows."""

from gateway.cluster.mirror import Sink
from gateway.cluster.reflector import Reflector
from gateway.cluster.watching import Observer, ReflectorLimits
from moorage.kube import KubeClient
from moorage.models import NodeManifest, Pod, decode_node, decode_pod

UNFINISHED_PODS = "status.phase!=Succeeded,status.phase!=Failed"
"""A pod that ends no longer matches, so the API server reports it as deleted."""


def node_reflector(
    client: KubeClient,
    sink: Sink[NodeManifest],
    observer: Observer,
    limits: ReflectorLimits | None = None,
) -> Reflector[NodeManifest]:
    """Follow all nodes; the sink knows them by name."""
    return Reflector(
        client,
        "/api/v1/nodes",
        sink=sink,
        decode=decode_node,
        key="name",
        observer=observer,
        limits=limits,
    )


def pod_reflector(
    client: KubeClient,
    sink: Sink[Pod],
    observer: Observer,
    limits: ReflectorLimits | None = None,
) -> Reflector[Pod]:
    """Follow all pods that have not ended; the sink knows them by uid."""
    return Reflector(
        client,
        "/api/v1/pods",
        sink=sink,
        decode=decode_pod,
        key="uid",
        observer=observer,
        query={"fieldSelector": UNFINISHED_PODS},
        limits=limits,
    )
