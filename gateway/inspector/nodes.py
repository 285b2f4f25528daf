"""Answers `GET /nodes`, `GET /nodes/NAME`, and `GET /map`, which has all nodes in few bytes."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from gateway.cluster.state import ClusterState, Placement
from gateway.inspector.queries import Page, bad_query
from gateway.inspector.usage import AT_ONCE, ZONE, NodeLine, Usage
from moorage_host.http.callers import readable

TILES = 10_000
"""Nodes on the map, at most; about 50 bytes each, 12 once compressed."""

GROUPS = 100
"""Values of a label that the map can be grouped by."""

SORTED_BY = ("name", "zone", "pods", "cpu", "memory", "changed")


def node_routes(state: ClusterState) -> list[web.RouteDef]:
    """Return the routes of nodes, as they are in *state*."""
    usage = Usage(state)

    async def show_nodes(request: web.Request) -> web.Response:
        try:
            page = Page.of(request.query, SORTED_BY)
        except ValueError as error:
            return bad_query(error)
        matching = [
            line for line in await usage.lines() if page.search in f"{line.name} {line.zone}"
        ]
        matching.sort(key=lambda line: _key(line, page.sort), reverse=page.descending)
        return _json(
            {
                "total": len(matching),
                "generation": state.generation,
                "items": matching[page.offset : page.offset + page.limit],
            }
        )

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
                "row": entry.row,
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
        labels = _Labels()
        tiles: list[Tile] = []
        for count, line in enumerate(lines, start=1):
            if (entry := state.rows.entries.get(line.name)) is None:
                continue
            of_node = entry.manifest.metadata.labels
            labels.note(of_node)
            if len(tiles) < TILES:
                tiles.append(_tile(line, of_node.get(by, "")))
            if count % AT_ONCE == 0:
                await asyncio.sleep(0)
        return _json({"by": by, "labels": labels.useful(), "total": len(lines), "nodes": tiles})

    return [
        web.get("/map", show_map),
        web.get("/nodes", show_nodes),
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


class _Labels:
    """Which labels group nodes: those with few values."""

    def __init__(self) -> None:
        self._values: dict[str, set[str]] = {}
        self._nodes = 0

    def note(self, labels: Mapping[str, str]) -> None:
        self._nodes += 1
        for key, value in labels.items():
            values = self._values.setdefault(key, set())
            if len(values) <= GROUPS:
                values.add(value)

    def useful(self) -> list[str]:
        most = min(GROUPS, max(1, self._nodes // 2))
        return sorted(key for key, values in self._values.items() if len(values) <= most)


def _key(line: NodeLine, sort: str) -> tuple[Any, str]:
    return getattr(line, sort), line.name


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
