"""Makes what a plugin under test is given: nodes, pods on them, and objects that it reads."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from moorage.models import NodeManifest, ObjectKind, ObjectName, Pod, encode
from moorage.plugin.hooks import Plugin
from moorage.rules import selects_object
from moorage.snapshot import Nodes, ObjectStore, Snapshot
from moorage.snapshot.placements import LONG_AGO

GivenObjects = Mapping[ObjectKind, Iterable[Mapping[str, Any]]]
"""Manifests by kind."""

NO_OBJECTS: GivenObjects = {}


def read_by(plugin: Plugin, objects: GivenObjects) -> GivenObjects:
    """Return what a service would give to the plugin: only objects of its `reads`.

    Raises:
        ValueError: Objects are of a kind that the plugin does not read.
    """
    for kind in objects:
        if kind not in plugin.reads:
            raise ValueError(f"{plugin.name} does not read {kind}: name the kind in its `reads`")
    return {kind: objects.get(kind, ()) for kind in plugin.reads}


def store_of(objects: GivenObjects) -> ObjectStore:
    """Return a store with those of *objects* that their kinds select.

    An object without a namespace is in the one that its kind selects.

    Raises:
        ValueError: One has no name, or two share it.
    """
    store = ObjectStore(objects)
    for kind, manifests in objects.items():
        complete = [_in_namespace(kind, manifest) for manifest in manifests]
        named = [(_name(kind, each), each) for each in complete if selects_object(kind, each)]
        for name, count in Counter(name for name, _ in named).items():
            if count > 1:
                raise ValueError(f"{count} {kind} have the name {name.name!r}: give each its own")
        for name, manifest in named:
            store.put(name, encode(manifest))
    return store


def _in_namespace(kind: ObjectKind, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = manifest.get("metadata", {})
    if not kind.namespace or metadata.get("namespace"):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": kind.namespace}}


def _name(kind: ObjectKind, manifest: Mapping[str, Any]) -> ObjectName:
    metadata = manifest.get("metadata", {})
    if not metadata.get("name"):
        raise ValueError(f"one of the {kind} has no metadata.name")
    return ObjectName(kind, metadata.get("namespace", ""), metadata["name"])


def make_nodes(
    *nodes: NodeManifest,
    pods: Iterable[Pod] = (),
    new_pods: Iterable[Pod] = (),
    objects: GivenObjects = NO_OBJECTS,
) -> Nodes:
    """Select all *nodes*, in order, of a snapshot with pods on the nodes that they name.

    Args:
        nodes: The nodes.
        pods: Pods that have long been there.
        new_pods: Pods that came to their nodes just now.
        objects: Manifests of additional kinds.

    Raises:
        ValueError: Two nodes, pods or objects share a name or uid, or a pod's node is not there.
    """
    old_pods, new_pods = tuple(pods), tuple(new_pods)
    pods = (*old_pods, *new_pods)
    _check_distinct("nodes have the name", (node.name for node in nodes))
    _check_distinct("pods have the name", (f"{pod.namespace}/{pod.name}" for pod in pods))
    _check_distinct("pods have the uid", (pod.uid for pod in pods))
    snapshot = Snapshot()
    for row, node in enumerate(nodes):
        snapshot.set_node(row, node)
    for index, pod in enumerate(pods):
        place = snapshot.row_of(pod.spec.node_name)
        if place is None:
            raise ValueError(
                f"pod {pod.namespace}/{pod.name} is on node {pod.spec.node_name!r}, which is not "
                "among the nodes"
            )
        snapshot.place_pod(place, pod, since=LONG_AGO if index < len(old_pods) else None)
    snapshot.objects = store_of(objects)
    return snapshot.nodes()


def cluster_for(
    pod: Pod,
    nodes: Iterable[NodeManifest],
    pods: Iterable[Pod] = (),
    new_pods: Iterable[Pod] = (),
    objects: GivenObjects = NO_OBJECTS,
) -> Nodes:
    """Select all nodes of a cluster in which *pod* is to be placed, see `make_nodes`."""
    pods, new_pods = tuple(pods), tuple(new_pods)
    if any(other.uid == pod.uid for other in (*pods, *new_pods)):
        raise ValueError(
            f"pod {pod.namespace}/{pod.name} cannot be placed and on a node at the same time: "
            "give the others another name"
        )
    return make_nodes(*nodes, pods=pods, new_pods=new_pods, objects=objects)


def _check_distinct(what: str, values: Iterable[str]) -> None:
    for value, count in Counter(values).most_common(1):
        if count > 1:
            raise ValueError(f"{count} {what} {value!r}: give each its own")
