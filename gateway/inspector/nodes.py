"""Answers `GET /nodes` and `GET /nodes/NAME`."""

from typing import Any

import msgspec
from aiohttp import web

from gateway.cluster.state import ClusterState, Placement
from gateway.inspector.queries import Page, bad_query
from gateway.inspector.usage import NodeLine, Usage
from moorage_host.http.callers import readable

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

    return [web.get("/nodes", show_nodes), web.get("/nodes/{name}", show_node)]


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
