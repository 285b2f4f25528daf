"""The objects of additional kinds that a plugin under test is given, as a service would."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from moorage.models import ObjectKind, ObjectName, Pod, decode_pod, encode
from moorage.plugin.hooks import Plugin
from moorage.rules import selects_object
from moorage.snapshot import ObjectStore

GivenObjects = Mapping[ObjectKind, Iterable[Mapping[str, Any] | Pod]]
"""Manifests by kind; of pods, what `make_pod` makes too."""

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
        is_pod = (kind.group, kind.plural) == ("", "pods")  # of which services keep a part
        for name, manifest in named:
            store.put(name, encode(decode_pod(encode(manifest)) if is_pod else manifest))
    return store


def manifest_of(pod: Pod) -> dict[str, Any]:
    """Return a pod as JSON-like content."""
    found: dict[str, Any] = msgspec.json.decode(encode(pod))
    return found


def _in_namespace(kind: ObjectKind, given: Mapping[str, Any] | Pod) -> Mapping[str, Any]:
    manifest = manifest_of(given) if isinstance(given, Pod) else given
    metadata = manifest.get("metadata", {})
    if not kind.namespace or metadata.get("namespace"):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": kind.namespace}}


def _name(kind: ObjectKind, manifest: Mapping[str, Any]) -> ObjectName:
    metadata = manifest.get("metadata", {})
    if not metadata.get("name"):
        raise ValueError(f"one of the {kind} has no metadata.name")
    return ObjectName(kind, metadata.get("namespace", ""), metadata["name"])
