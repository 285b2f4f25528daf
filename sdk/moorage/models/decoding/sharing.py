"""Lets decoded pods and nodes share what they have in common, so that large clusters fit in memory.

150,000 pods come from a few hundred templates: their labels, tolerations, containers and so on are
equal, and only names, uids and times differ. The codec passes every object through here, before
anyone else has seen it.
"""

from collections.abc import Mapping
from copy import copy
from typing import Final

from msgspec.structs import force_setattr

from moorage.models.base import read_only
from moorage.models.decoding.freezing import freeze_template
from moorage.models.interning import Interned, InternedTexts
from moorage.models.meta import OwnerReference
from moorage.models.node import Condition, ContainerImage, NodeManifest, NodeSpec
from moorage.models.pod import Pod, PodStatus
from moorage.models.pod_spec import PodSpec, Volume
from moorage.units.quantity import Quantity

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps a second copy of the object; decoding drops it."""

_text = InternedTexts()
_texts: Interned[Mapping[str, str]] = Interned(_text.of)
_owners: Interned[tuple[OwnerReference, ...]] = Interned()
_templates: Interned[PodSpec] = Interned(freeze_template)
_pod_statuses: Interned[PodStatus] = Interned()
_node_specs: Interned[NodeSpec] = Interned()
_conditions: Interned[tuple[Condition, ...]] = Interned()
_quantities: Interned[Mapping[str, Quantity]] = Interned(read_only)
_images: Interned[ContainerImage] = Interned()


def trim_pod(pod: Pod) -> Pod:
    """Drop what nobody reads of a pod that nobody else has seen yet."""
    metadata, spec = pod.metadata, pod.spec
    if LAST_APPLIED in metadata.annotations:
        force_setattr(metadata, "annotations", _wanted(metadata.annotations))
    if spec.volumes:
        force_setattr(spec, "volumes", tuple(filter(_is_read, spec.volumes)))
    return pod


def share_pod(pod: Pod) -> Pod:
    """Trim a pod, and give it the parts that other pods have as well."""
    metadata = trim_pod(pod).metadata
    force_setattr(metadata, "namespace", _text(metadata.namespace))
    force_setattr(metadata, "labels", _texts(metadata.labels))
    force_setattr(metadata, "annotations", _texts(metadata.annotations))
    force_setattr(metadata, "owner_references", _owners(metadata.owner_references))
    force_setattr(pod, "status", _pod_statuses(pod.status))
    force_setattr(pod, "spec", _with_shared_template(pod.spec))
    return pod


def share_node(node: NodeManifest) -> NodeManifest:
    """Give a node that nobody else has seen yet the parts that other nodes have as well."""
    metadata, status = node.metadata, node.status
    # Most labels of nodes are the same, but no two nodes have all of them in common.
    force_setattr(metadata, "labels", _text.of(metadata.labels))
    force_setattr(metadata, "annotations", _text.of(_wanted(metadata.annotations)))
    force_setattr(node, "spec", _node_specs(node.spec))
    force_setattr(status, "allocatable", _quantities(status.allocatable))
    force_setattr(status, "conditions", _conditions(status.conditions))
    force_setattr(status, "images", tuple([_images(image) for image in status.images]))
    return node


def _with_shared_template(spec: PodSpec) -> PodSpec:
    # Where a pod runs and which claims it mounts are its own; all the rest comes from its template.
    node_name, volumes = spec.node_name, spec.volumes
    force_setattr(spec, "node_name", "")
    force_setattr(spec, "volumes", ())
    own = copy(_templates(spec))
    force_setattr(own, "node_name", _text(node_name))
    force_setattr(own, "volumes", volumes)
    return own


def _is_read(volume: Volume) -> bool:
    return volume != Volume(name=volume.name)


def _wanted(annotations: Mapping[str, str]) -> Mapping[str, str]:
    if LAST_APPLIED not in annotations:
        return annotations
    return {key: value for key, value in annotations.items() if key != LAST_APPLIED}
