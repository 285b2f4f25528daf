"""Nodes and pods, which the gateway always follows, and the kinds that plugins ask for."""

import msgspec

from gateway.cluster.attempts import failure_of
from gateway.cluster.objects import ObjectContent, decode_object, decode_pod_content
from gateway.cluster.watch.limits import Observer, ReflectorLimits
from gateway.cluster.watch.mirror import Sink
from gateway.cluster.watch.reflector import Reflector
from gateway.cluster.watch.sinks import SeenPod
from moorage.models import NodeManifest, ObjectKind, decode_node, decode_pod
from moorage_host.kube import KubeClient

PODS = "/api/v1/pods"

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
    sink: Sink[SeenPod],
    observer: Observer,
    limits: ReflectorLimits | None = None,
) -> Reflector[SeenPod]:
    """Follow all pods that have not ended; the sink knows them by uid."""
    return Reflector(
        client,
        PODS,
        sink=sink,
        decode=decode_seen_pod,
        key="uid",
        observer=observer,
        query={"fieldSelector": UNFINISHED_PODS},
        limits=limits,
    )


def decode_seen_pod(raw: bytes | msgspec.Raw) -> SeenPod:
    """Read a pod, and whether its last attempt failed if it has no node.

    Raises:
        msgspec.DecodeError: It is no pod.
    """
    pod = decode_pod(raw)
    return SeenPod(pod, "" if pod.spec.node_name else failure_of(raw))


def object_reflector(
    client: KubeClient,
    kind: ObjectKind,
    sink: Sink[ObjectContent],
    observer: Observer,
    limits: ReflectorLimits | None = None,
) -> Reflector[ObjectContent]:
    """Follow the objects of a further kind that are needed; the sink knows them by uid."""
    return Reflector(
        client,
        kind.path,
        sink=sink,
        decode=decode_pod_content if (kind.group, kind.plural) == ("", "pods") else decode_object,
        key="uid",
        observer=observer,
        query=kind.query,
        optional=kind.optional,
        limits=limits,
    )
