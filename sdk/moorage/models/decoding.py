"""Reads and writes models as JSON; the only module that knows how.

Decoded pods and nodes share what they have in common, so that large clusters fit in memory: 150,000
pods come from a few hundred templates, and only names, uids and times differ. What they share is
made read-only, before anyone else has seen it.

Of a pod's status only what counts is kept: where it stands, since when it is on its node, and what
it counts there while it is resized (`moorage.models.requests`).
"""

from collections.abc import Callable, Mapping
from copy import copy
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import force_setattr, replace

from moorage.models.base import (
    NOTHING,
    LabelSelector,
    Metadata,
    Model,
    OwnerReference,
    ReadOnlyDict,
    read_only,
)
from moorage.models.interning import Interned, InternedTexts
from moorage.models.node import Condition, ContainerImage, NodeManifest, NodeSpec
from moorage.models.pod import Pod, PodStatus
from moorage.models.pod_spec import Affinity, PodSpec, Volume
from moorage.models.requests import Actual, Counted, counted
from moorage.units.quantity import Quantity


def freeze_pod(pod: Pod) -> Pod:
    """Make all mappings of a pod read-only."""
    _freeze_both(pod.metadata, "labels", "annotations")
    freeze_template(pod.spec)
    return pod


def freeze_template(spec: PodSpec) -> PodSpec:
    """Make all mappings of a pod's spec read-only."""
    # Each is looked at first: a call for each of many empty ones would cost more than they do.
    if spec.overhead is not NOTHING or spec.node_selector is not NOTHING:
        _freeze_both(spec, "overhead", "node_selector")
    if spec.resources.requests is not NOTHING or spec.resources.limits is not NOTHING:
        _freeze_both(spec.resources, "requests", "limits")
    for container in (*spec.containers, *spec.init_containers):
        resources = container.resources
        if resources.requests is not NOTHING or resources.limits is not NOTHING:
            _freeze_both(resources, "requests", "limits")
    if spec.affinity is not None:
        _freeze_affinity(spec.affinity)
    for constraint in spec.topology_spread_constraints:
        _freeze_selector(constraint.label_selector)
    return spec


def freeze_node(node: NodeManifest) -> NodeManifest:
    """Make all mappings of a node read-only."""
    _freeze_both(node.metadata, "labels", "annotations")
    _freeze(node.status, "allocatable", node.status.allocatable)
    return node


def _freeze(owner: Model, name: str, mapping: Mapping[str, object]) -> None:
    if type(mapping) is not ReadOnlyDict:
        force_setattr(owner, name, ReadOnlyDict(mapping) if mapping else NOTHING)


def _freeze_both(owner: Model, name: str, other: str) -> None:
    for each in (name, other):
        mapping = getattr(owner, each)
        if type(mapping) is not ReadOnlyDict:
            force_setattr(owner, each, ReadOnlyDict(mapping) if mapping else NOTHING)


def _freeze_affinity(affinity: Affinity) -> None:
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not None:
            for term in (*part.required, *(each.pod_affinity_term for each in part.preferred)):
                _freeze_selector(term.label_selector)
                _freeze_selector(term.namespace_selector)


def _freeze_selector(selector: LabelSelector | None) -> None:
    if selector is not None:
        _freeze(selector, "match_labels", selector.match_labels)


LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps a second copy of the object; decoding drops it."""

MAX_CONSTRAINTS: Final = 65_536
"""Bytes of a pod's constraints, see `constraints_size`; one that has more is kept without them.

A pod of 1 MB with 13,000 terms of anti-affinity takes 7 MiB in each process that keeps it, and
whoever may create pods may create many. Its resources count all the same.
"""

_pack = msgspec.msgpack.Encoder().encode
_text = InternedTexts()
_texts: Interned[Mapping[str, str]] = Interned(_text.of)
_owners: Interned[tuple[OwnerReference, ...]] = Interned()
_templates: Interned[PodSpec] = Interned(freeze_template)
_pod_statuses: Interned[PodStatus] = Interned()
_node_specs: Interned[NodeSpec] = Interned()
_conditions: Interned[tuple[Condition, ...]] = Interned()
_quantities: Interned[Mapping[str, Quantity]] = Interned(read_only)
_images: Interned[ContainerImage] = Interned()

_sources_of = attrgetter(*Volume.__struct_fields__[1:])
_NO_SOURCES = _sources_of(Volume())


class _SeenCondition(Model, frozen=True):
    type: str = ""
    reason: str | None = ""
    last_transition_time: str | None = ""


class _SeenStatus(Actual, frozen=True):
    phase: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    start_time: str = ""
    counted: Counted | None = None
    conditions: tuple[_SeenCondition, ...] | None = None


class _SeenPod(Model, frozen=True):
    """A pod as the API server has it."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: _SeenStatus = msgspec.field(default_factory=_SeenStatus)


def trim_pod(pod: "Pod | _SeenPod") -> Pod:
    """Drop what nobody reads of a pod that nobody else has seen yet."""
    if isinstance(pod, _SeenPod):
        seen, since, infeasible, size = pod.status, pod.status.start_time, None, pod.status.counted
        if pod.spec.node_name:
            for condition in seen.conditions or ():
                if condition.type == "PodScheduled":
                    since = condition.last_transition_time or since
                elif condition.type == "PodResizePending" and infeasible is None:
                    infeasible = condition.reason == "Infeasible"
            given = seen.container_statuses or seen.init_container_statuses or seen.resources
            if given or infeasible:
                size = counted(pod.spec, seen, infeasible=bool(infeasible))
        status = PodStatus(
            phase=seen.phase,
            reason=seen.reason if seen.phase in ("Failed", "Succeeded") else "",
            nominated_node_name=seen.nominated_node_name,
            start_time=since,
            counted=size,
        )
        pod = Pod(metadata=pod.metadata, spec=pod.spec, status=status)
    metadata, spec = pod.metadata, pod.spec
    if LAST_APPLIED in metadata.annotations:
        force_setattr(metadata, "annotations", _wanted(metadata.annotations))
    if spec.volumes:
        read = [volume for volume in spec.volumes if _sources_of(volume) != _NO_SOURCES]
        force_setattr(spec, "volumes", tuple(read))
    return pod


def constraints_size(pod: Pod) -> int:
    """Return the size of a pod's node selector, affinities, tolerations and spread constraints."""
    spec = pod.spec
    try:
        return len(
            _pack(
                (
                    spec.node_selector,
                    spec.affinity,
                    spec.tolerations,
                    spec.topology_spread_constraints,
                )
            )
        )
    except OverflowError:  # an integer of more than 64 bits, which no API server takes
        return MAX_CONSTRAINTS + 1


def share_pod(pod: "Pod | _SeenPod") -> Pod:
    """Trim a pod, and give it the parts that other pods have as well."""
    pod = trim_pod(pod)
    metadata = pod.metadata
    if constraints_size(pod) > MAX_CONSTRAINTS:
        force_setattr(pod.spec, "node_selector", NOTHING)
        force_setattr(pod.spec, "affinity", None)
        force_setattr(pod.spec, "tolerations", ())
        force_setattr(pod.spec, "topology_spread_constraints", ())
    force_setattr(metadata, "namespace", _text(metadata.namespace))
    force_setattr(metadata, "labels", _texts(metadata.labels))
    force_setattr(metadata, "annotations", _texts(metadata.annotations))
    force_setattr(metadata, "owner_references", _owners(metadata.owner_references))
    force_setattr(pod, "status", _pod_statuses(pod.status))
    force_setattr(pod, "spec", _with_shared_template(pod.spec))
    return pod


def share_changed_pod(pod: Pod, before: Pod) -> Pod | None:
    """Do what `share_pod` does for a trimmed pod of which at most node and status have changed.

    Args:
        pod: The pod, which nobody else has seen yet.
        before: What `share_pod` made of it earlier.

    Returns:
        *before* if nothing has changed; None if more has, or it is another pod.
    """
    if pod == before:
        return before
    node, spec = pod.spec.node_name, before.spec
    if spec.node_name != node:
        spec = replace(spec, node_name=_text(node))
    if pod.metadata != before.metadata or pod.spec != spec:
        return None
    return Pod(metadata=before.metadata, spec=spec, status=_pod_statuses(pod.status))


def trim_node(node: NodeManifest) -> NodeManifest:
    """Drop what nobody reads of a node that nobody else has seen yet."""
    if LAST_APPLIED in node.metadata.annotations:
        force_setattr(node.metadata, "annotations", _wanted(node.metadata.annotations))
    return node


def share_node(node: NodeManifest) -> NodeManifest:
    """Trim a node, and give it the parts that other nodes have as well."""
    metadata, status = trim_node(node).metadata, node.status
    # Most labels of nodes are the same, but no two nodes have all of them in common.
    force_setattr(metadata, "labels", _text.of(metadata.labels))
    force_setattr(metadata, "annotations", _text.of(metadata.annotations))
    force_setattr(node, "spec", _node_specs(node.spec))
    force_setattr(status, "allocatable", _quantities(status.allocatable))
    force_setattr(status, "conditions", _conditions(status.conditions))
    force_setattr(status, "images", tuple([_images(image) for image in status.images]))
    return node


def share_changed_node(node: NodeManifest, before: NodeManifest) -> NodeManifest:
    """Do what `share_node` does for a trimmed node, of which it was *before* that earlier.

    Most events change nothing that is read, or labels: *before* is returned, or its other parts.
    """
    if node.status != before.status or node.spec != before.spec:
        return share_node(node)
    metadata, known = node.metadata, before.metadata
    if metadata == known:
        return before
    for name in ("labels", "annotations"):
        texts, as_before = getattr(metadata, name), getattr(known, name)
        force_setattr(metadata, name, as_before if texts == as_before else _text.of(texts))
    return NodeManifest(metadata=metadata, spec=before.spec, status=before.status)


def _with_shared_template(spec: PodSpec) -> PodSpec:
    # Where a pod runs and which claims it mounts are its own; all the rest comes from its template.
    node_name, volumes = spec.node_name, spec.volumes
    force_setattr(spec, "node_name", "")
    force_setattr(spec, "volumes", ())
    own = copy(_templates(spec))
    force_setattr(own, "node_name", _text(node_name))
    force_setattr(own, "volumes", volumes)
    return own


def _wanted(annotations: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in annotations.items() if key != LAST_APPLIED}


T = TypeVar("T")
R = TypeVar("R")

TOO_DEEP = "JSON is nested too deeply"


def tolerant_decoder(kind: type[T], finish: Callable[[T], R]) -> Callable[[bytes | str], R]:
    """Return what reads JSON as *kind*, null being the same as nothing, and applies *finish*.

    It raises msgspec.DecodeError if the text is not JSON, is nested too deeply, or a field has the
    wrong type.
    """
    decode = msgspec.json.Decoder(kind).decode

    def decode_tolerantly(text: bytes | str) -> R:
        try:
            return finish(decode(text))
        except msgspec.ValidationError:
            # Go writes null for some empty fields, where msgspec wants the field to be absent.
            try:
                return finish(msgspec.convert(_without_nulls(msgspec.json.decode(text)), kind))
            except RecursionError:
                raise msgspec.DecodeError(TOO_DEEP) from None
        except RecursionError:
            raise msgspec.DecodeError(TOO_DEEP) from None

    return decode_tolerantly


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(v) for key, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in value if v is not None]
    return value


decode_pod: Callable[[bytes | str], Pod] = tolerant_decoder(_SeenPod, share_pod)
"""Read a pod from JSON.

Raises:
    msgspec.DecodeError: The text is not JSON, or a field has the wrong type (with its path).
"""

decode_passing_pod: Callable[[bytes | str], Pod] = tolerant_decoder(_SeenPod, trim_pod)
"""Read the same from JSON, for less time: a pod that nobody keeps need not share its parts."""

decode_passing_node: Callable[[bytes | str], NodeManifest] = tolerant_decoder(
    NodeManifest, trim_node
)
"""Read a node from JSON that does not share its parts."""

decode_node: Callable[[bytes | str], NodeManifest] = tolerant_decoder(NodeManifest, share_node)
"""Read a node from JSON.

Raises:
    msgspec.DecodeError: The text is not JSON, or a field has the wrong type (with its path).
"""

encode: Callable[[Any], bytes] = msgspec.json.Encoder(order="deterministic").encode
"""Write a model as JSON: known fields without defaults, in a stable order; equal models alike."""
