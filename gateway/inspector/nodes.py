"""Answers `GET /nodes`, `GET /nodes/NAME`, and `GET /map`, which has all nodes in few bytes.

The line of a node is made again only after it changed.
"""

import asyncio
from collections import defaultdict
from itertools import islice
from operator import attrgetter
from typing import Any

import msgspec
from aiohttp import web

from gateway.cluster.placements import Placement, requested
from gateway.cluster.state import ClusterState
from gateway.decisions.query import TablePart, refusing
from moorage.models import NodeManifest
from moorage_host.http.callers import readable

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
    amounts = {"cpu": 0, "memory": 0} | requested(placements)
    del amounts["pods"]
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
        requested=amounts,
        allocatable=allocatable,
        cpu=_share(amounts, allocatable, "cpu"),
        memory=_share(amounts, allocatable, "memory"),
        changed=changed,
    )


def is_ready(node: NodeManifest) -> bool:
    """Whether the node's condition Ready is true; one without conditions counts as ready."""
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    return ready is None or ready.status == "True"


def _share(requested: dict[str, Any], allocatable: dict[str, Any], resource: str) -> float:
    total = allocatable.get(resource, 0)
    return round(requested[resource] / total, 4) if total else 0.0


TILES = 10_000
"""Nodes on the map, at most; about 50 bytes each, 12 once compressed."""

GROUPS = 100
"""Values of a label that the map can be grouped by."""

LABELS = 1000
"""Labels that the map can be grouped by, and those of a node that are looked at."""


def node_routes(state: ClusterState) -> list[web.RouteDef]:
    """Return the routes of nodes, as they are in *state*."""
    usage = Usage(state)

    async def show_nodes(request: web.Request) -> web.Response:
        part = TablePart.of(request).slice
        lines = sorted(await usage.lines(), key=attrgetter("name"))
        return _json({"total": len(lines), "items": lines[part]})

    async def show_node(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        entry, line = state.rows.entries.get(name), usage.line(name)
        if entry is None or line is None:
            return web.json_response({"error": f"the gateway knows no node {name}"}, status=404)
        node, placements = entry.manifest, state.placements(name)
        allowed = await readable(request, (each.pod.namespace for each in placements))
        shown = [each for each in placements if each.pod.namespace in allowed]
        return _json(
            {
                **msgspec.to_builtins(line),
                "labels": dict(node.metadata.labels),
                "taints": [msgspec.to_builtins(taint) for taint in node.spec.taints],
                "conditions": [msgspec.to_builtins(each) for each in node.status.conditions],
                "podsOnIt": [_pod(each) for each in shown],
                "hiddenPods": len(placements) - len(shown),
            }
        )

    async def show_map(request: web.Request) -> web.Response:
        by = request.query.get("by", ZONE)
        lines = await usage.lines()
        values: dict[str, set[str]] = defaultdict(set)  # by label
        tiles: list[Tile] = []
        for count, line in enumerate(lines, start=1):
            if (entry := state.rows.entries.get(line.name)) is None:
                continue
            of_node = entry.manifest.metadata.labels
            for label, value in islice(of_node.items(), LABELS):
                if (label in values or len(values) < LABELS) and len(values[label]) <= GROUPS:
                    values[label].add(value)
            if len(tiles) < TILES:
                tiles.append(_tile(line, of_node.get(by, "")))
            if count % AT_ONCE == 0:
                await asyncio.sleep(0)
        most = min(GROUPS, max(1, len(lines) // 2))
        labels = sorted(label for label, found in values.items() if len(found) <= most)
        return _json({"by": by, "labels": labels, "total": len(lines), "nodes": tiles})

    return [
        web.get("/map", show_map),
        web.get("/nodes", refusing(show_nodes)),
        web.get("/nodes/{name}", show_node),
    ]


Tile = tuple[str, str, float, float, int, int, int]
"""Name, value of the label, shares of CPU and memory, pods, pods that fit, and the flags below."""

NOT_READY, CORDONED, TAINTED = 1, 2, 4


def _tile(line: NodeLine, value: str) -> Tile:
    flags = (
        NOT_READY * (not line.ready) + CORDONED * line.unschedulable + TAINTED * (line.taints > 0)
    )
    fits = line.allocatable.get("pods", 0)
    return line.name, value, line.cpu, line.memory, line.pods, fits, flags


def _pod(placement: Placement) -> dict[str, Any]:
    pod = placement.pod
    return {
        "namespace": pod.namespace,
        "pod": pod.name,
        "state": placement.state,
        "schedulerName": pod.spec.scheduler_name,
        "priority": pod.spec.priority,
        "terminating": pod.is_terminating,
        "requested": dict(pod.requests),
    }


def _json(answer: object) -> web.Response:
    body = msgspec.json.encode(answer) + b"\n"
    response = web.Response(body=body, content_type="application/json")
    response.enable_compression()
    return response
