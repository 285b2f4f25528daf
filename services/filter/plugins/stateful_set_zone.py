"""Keeps each pod of a StatefulSet in one zone, like Cockroach Labs' crl-scheduler."""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from msgspec import Struct

from moorage import (
    PERSISTENT_VOLUMES,
    SKIP,
    STATEFUL_SETS,
    Arguments,
    FilterPlugin,
    Meta,
    Nodes,
    Objects,
    Pod,
    Preparation,
    Rejection,
    Verdicts,
)
from moorage.models import Metadata, NodeSelector

POD_NAME = "statefulset.kubernetes.io/pod-name"
NO_ZONE = Rejection("node(s) have no zone")
OTHER_ZONE = Rejection("node(s) are not in the zone of the StatefulSet's pod", cured_by="capacity")

Volumes = Mapping[str, set[int]]
"""For each zone the ordinals of the pods that have a volume there."""


class _Template(Struct, frozen=True):
    metadata: Metadata = Metadata()


class _SetSpec(Struct, frozen=True, rename="camel"):
    volume_claim_templates: list[_Template] = []


class _StatefulSet(Struct, frozen=True):
    spec: _SetSpec = _SetSpec()


class _Claim(Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _VolumeAffinity(Struct, frozen=True):
    required: NodeSelector = NodeSelector()


class _VolumeSpec(Struct, frozen=True, rename="camel"):
    claim_ref: _Claim | None = None
    node_affinity: _VolumeAffinity = _VolumeAffinity()


class _VolumeStatus(Struct, frozen=True):
    phase: str = ""


class _Volume(Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: _VolumeSpec = _VolumeSpec()
    status: _VolumeStatus = _VolumeStatus()


class StatefulSetZone(FilterPlugin):
    """Keeps each pod of a StatefulSet in one zone by its ordinal, which is that of its volumes.

    So a StatefulSet that shrinks and grows again finds its volumes where its pods may run. All
    other pods may run anywhere. Both reasons are unresolvable: evicting pods changes no zone.
    """

    reads = (STATEFUL_SETS, PERSISTENT_VOLUMES)
    reads_placements = False  # it reads manifests only

    class Args(Arguments):
        """The label of nodes and volumes that names their zone."""

        topology_key: Annotated[str, Meta(min_length=1)] = "topology.kubernetes.io/zone"

    async def prepare(self, pod: Pod, nodes: Nodes) -> Preparation | None:
        """Skip pods that do not belong to a StatefulSet, or have no ordinal."""
        return None if _owner(pod) and _ordinal(pod) is not None else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Verdicts:
        """Reject nodes outside the zone of the pod's ordinal, unless it has a volume there.

        Raises:
            LookupError: The pod's StatefulSet is not known, perhaps not yet.
        """
        ordinal = _ordinal(pod) or 0
        volumes = self._volumes(pod, nodes)
        zones = arrange(_nodes_by_zone(nodes.cluster, self.args.topology_key), volumes)
        allowed = {zone for zone, ordinals in volumes.items() if ordinal in ordinals}
        if zones:
            allowed.add(zones[ordinal % len(zones)])
        column = nodes.label(self.args.topology_key)
        verdicts = nodes.verdicts().reject(column.isin((None, "")), NO_ZONE)
        return verdicts.reject(~column.isin(allowed), OTHER_ZONE)

    def _volumes(self, pod: Pod, nodes: Nodes) -> Volumes:
        owner = _owner(pod)
        found = nodes.objects(STATEFUL_SETS, _StatefulSet).get(owner, pod.namespace)
        if found is None:
            raise LookupError("the pod's StatefulSet is not known (yet)")
        key = self.args.topology_key
        claimed = nodes.objects(PERSISTENT_VOLUMES, _Volume).derived(
            ("claimed", key), lambda volumes: _claimed(volumes, key)
        )
        result: dict[str, set[int]] = {}
        for template in found.spec.volume_claim_templates:
            claims = f"{template.metadata.name}-{owner}"
            for zone, ordinals in claimed.get((pod.namespace, claims), {}).items():
                result.setdefault(zone, set()).update(ordinals)
        return result


def arrange(nodes: Mapping[str, int], volumes: Volumes) -> list[str]:
    """Return the zones in order: a pod's is the one at its ordinal modulo their number.

    The largest zone is the first, as long as volumes do not say otherwise.

    Args:
        nodes: How many nodes there are in each zone.
        volumes: Where pods have volumes.
    """
    initial = sorted(nodes, key=lambda zone: (-nodes[zone], zone))
    zones = list(initial)
    for zone in initial:
        if ordinals := volumes.get(zone):
            wanted, now = min(ordinals) % len(zones), zones.index(zone)
            zones[wanted], zones[now] = zones[now], zones[wanted]
    return zones


def _nodes_by_zone(cluster: Nodes, key: str) -> dict[str, int]:
    column = cluster.label(key)
    counts = column.sums(np.ones(len(cluster)))
    pairs = zip(column.values, counts.tolist(), strict=True)
    return {zone: count for zone, count in pairs if zone and count}


def _owner(pod: Pod) -> str:
    if POD_NAME not in pod.labels:
        return ""
    owners = pod.metadata.owner_references
    return next((owner.name for owner in owners if owner.kind == "StatefulSet"), "")


def _ordinal(pod: Pod) -> int | None:
    return _whole(pod.name.rpartition("-")[2])


def _claimed(volumes: Objects[_Volume], key: str) -> dict[tuple[str, str], dict[str, set[int]]]:
    """Return the ordinals of claims by their namespace and the rest of their name, and by zone.

    A claim of the StatefulSet "db-east" is not one of "db", though its name begins alike.
    """
    found: dict[tuple[str, str], dict[str, set[int]]] = {}
    for volume in volumes:
        claim = volume.spec.claim_ref
        if claim is None or volume.status.phase not in ("Pending", "Bound"):
            continue
        rest, _, last = claim.name.rpartition("-")
        if (ordinal := _whole(last)) is not None:
            by_zone = found.setdefault((claim.namespace, rest), {})
            for zone in _zones(volume, key):
                by_zone.setdefault(zone, set()).add(ordinal)
    return found


def _zones(volume: _Volume, key: str) -> set[str]:
    # A regional disk has several zones in one label.
    if label := volume.metadata.labels.get(key):
        return set(label.split("__"))
    return {
        zone
        for term in volume.spec.node_affinity.required.node_selector_terms
        for requirement in term.match_expressions
        if requirement.key == key and requirement.operator == "In"
        for zone in requirement.values
    }


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
