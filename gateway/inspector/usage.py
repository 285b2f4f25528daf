"""What is on each node: a line of the list for every node, made again only after it changed."""

import asyncio
from typing import Any

import msgspec

from gateway.cluster.state import ClusterState
from moorage.models import NodeManifest

AT_ONCE = 100
"""Nodes after which other work of the gateway gets its turn."""

ZONE = "topology.kubernetes.io/zone"


class NodeLine(msgspec.Struct, kw_only=True, frozen=True, rename="camel", gc=False):
    """A node in the list.

    Amounts are millicores of `cpu` and bytes of `memory`. `pods` counts bound, assumed and claimed
    ones; `changed` is the generation in which the node or a pod on it last changed.
    """

    name: str
    zone: str
    ready: bool
    unschedulable: bool
    taints: int
    pods: int
    assumed: int
    claimed: int
    requested: dict[str, int]
    allocatable: dict[str, int]
    cpu: float
    memory: float
    changed: int


class Usage:
    """The lines of all nodes."""

    def __init__(self, state: ClusterState) -> None:
        """Read *state*."""
        self._state = state
        self._lines: dict[str, tuple[NodeManifest, NodeLine]] = {}

    async def lines(self) -> list[NodeLine]:
        """Return the lines of all nodes; those that come or go meanwhile may be missing."""
        lines = []
        for count, name in enumerate(list(self._state.rows.of), start=1):
            if (line := self.line(name)) is not None:
                lines.append(line)
            if count % AT_ONCE == 0:
                await asyncio.sleep(0)
        for gone in self._lines.keys() - self._state.rows.of.keys():
            del self._lines[gone]
        return lines

    def line(self, name: str) -> NodeLine | None:
        """Return the line of a node, None if there is none."""
        rows = self._state.rows
        entry = rows.entries.get(name)
        if entry is None:
            return None
        changed = int(rows.touched[entry.row])
        kept = self._lines.get(name)
        if kept is None or kept[1].changed != changed or kept[0] is not entry.manifest:
            kept = entry.manifest, _line(entry.manifest, self._state, changed)
            self._lines[name] = kept
        return kept[1]


def _line(node: NodeManifest, state: ClusterState, changed: int) -> NodeLine:
    placements = state.placements(node.name)
    requested = {"cpu": 0, "memory": 0}
    for each in placements:
        for resource, amount in each.pod.requests.items():
            requested[resource] = requested.get(resource, 0) + amount
    allocatable = dict(node.allocatable)
    return NodeLine(
        name=node.name,
        zone=node.metadata.labels.get(ZONE, ""),
        ready=is_ready(node),
        unschedulable=node.spec.unschedulable,
        taints=len(node.spec.taints),
        pods=len(placements),
        assumed=sum(each.state == "assumed" for each in placements),
        claimed=sum(each.state == "claimed" for each in placements),
        requested=requested,
        allocatable=allocatable,
        cpu=_share(requested, allocatable, "cpu"),
        memory=_share(requested, allocatable, "memory"),
        changed=changed,
    )


def is_ready(node: NodeManifest) -> bool:
    """Whether the node's condition Ready is true; one without conditions counts as ready."""
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    return ready is None or ready.status == "True"


def _share(requested: dict[str, Any], allocatable: dict[str, Any], resource: str) -> float:
    total = allocatable.get(resource, 0)
    return round(requested[resource] / total, 4) if total else 0.0
