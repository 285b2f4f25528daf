"""Serves the page with a cluster that is made up, where tests need one larger than they can run."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from aiohttp import web

from gateway.decisions.explanation import Explanation
from gateway.inspector.assets import asset_routes

Object = dict[str, Any]

BEGIN = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=20)

SCORES = {"NodeResourcesFit": 2, "ImageLocality": 1, "TaintToleration": 3, "ZoneSpread": 5}

REASONS = {
    "NodeResourcesFit": "Insufficient cpu",
    "TaintToleration": "untolerated taint gpu=only:NoSchedule",
    "NodeAffinity": "didn't match Pod's node affinity/selector",
}


def summary(number: int, outcome: str = "bound", **more: Any) -> Object:
    """Return a decision as a list shows it; higher numbers are newer."""
    is_placed = outcome in {"bound", "binding"}
    return {
        "id": f"{number:08x}",
        "namespace": ("shop", "batch", "ml")[number % 3],
        "pod": f"worker-{number:04d}",
        "uid": f"uid-{number}",
        "time": (BEGIN + timedelta(seconds=number)).isoformat(),
        "profile": "moorage",
        "outcome": outcome,
        "node": f"node-{number % 50:04d}" if is_placed else "",
        "reason": "node-0001 leads node-0002 by 3.1: ZoneSpread +2.4, NodeResourcesFit +0.7"
        if is_placed
        else "no node suits it: NodeResourcesFit rejected 31 of 50: Insufficient cpu (others 19)",
        "nodes": 50,
        "feasible": 12 if is_placed else 0,
        "seconds": 0.0041,
        "attempt": 1,
        **more,
    }


def waiting(number: int, reason: str, *, pod: str = "", node: str = "", **more: Any) -> Object:
    """Return a pod that waits, as the list of pods shows it."""
    found = Explanation(
        pod=pod or f"shop/waiting-{number:04d}",
        uid=f"waiting-{number}",
        scheduler_name="moorage",
        created=(BEGIN + timedelta(seconds=number)).isoformat(),
        place=f"is on {node}" if node else "is pending",
        node=node,
        reason=reason,
        since=(BEGIN + timedelta(seconds=10 - number)).isoformat(),
    )
    shown: Object = msgspec.to_builtins(found)
    return shown | more


def node_item(number: int, rank: int) -> Object:
    """Return a node of an attempt; two of three are rejected."""
    item: Object = {
        "node": f"node-{number:04d}",
        "verdict": "feasible",
        "plugin": "",
        "reason": "",
        "rank": None,
        "total": None,
        "scores": {},
    }
    if number % 3:
        plugin = list(REASONS)[number // 3 % len(REASONS)]
        return item | {"verdict": "rejected", "plugin": plugin, "reason": REASONS[plugin]}
    scores = {
        plugin: {"raw": float(value), "normalized": float(value)}
        for index, plugin in enumerate(SCORES)
        for value in [(number * (7 + 4 * index)) % 101]
    }
    weighted = sum(each["normalized"] * SCORES[plugin] for plugin, each in scores.items())
    return item | {"rank": rank, "total": weighted / sum(SCORES.values()), "scores": scores}


def node_items(count: int) -> list[Object]:
    items = [node_item(number, 0) for number in range(count)]
    items.sort(key=lambda each: -1.0 if each["total"] is None else each["total"], reverse=True)
    for rank, each in enumerate(items, start=1):
        if each["total"] is not None:
            each["rank"] = rank
    return items


@dataclass
class Cluster:
    """What the fixture shows, and who follows it.

    `unnamed` are further nodes, which kube-scheduler did not name. Not `judged`, all are feasible
    without a score, as for a pod of a group that has its node.
    """

    nodes: int
    decisions: list[Object]
    waiting: list[Object] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    groups: list[Object] = field(default_factory=list)
    shadows: list[Object] = field(default_factory=list)
    unnamed: int = 0
    judged: bool = True
    clients: list[asyncio.Queue[Object | None]] = field(default_factory=list)

    def decide(self, decision: Object) -> None:
        self.decisions.insert(0, decision)
        for client in self.clients:
            client.put_nowait(decision)

    def lose(self) -> None:
        for client in self.clients:
            client.put_nowait(None)


def attempt(decision: Object, nodes: int) -> Object:
    rejected = nodes - (nodes + 2) // 3
    plugins = [
        {
            "plugin": plugin,
            "seconds": 0.0004,
            "rejected": rejected // 3,
            "reasons": [{"reason": reason, "nodes": rejected // 3, "unresolvable": False}],
        }
        for plugin, reason in REASONS.items()
    ]
    return {
        **decision,
        "policyRevision": "3f1c9a7be0d2",
        "generation": 4211,
        "why": [
            "node-0001 leads node-0002 by 3.1 points",
            "kube-scheduler chose among 12 of 50 nodes",
        ],
        "filter": {
            "nodes": nodes,
            "feasible": nodes - rejected,
            "seconds": 0.0021,
            "plugins": plugins,
            "cachedNodes": nodes // 4,
        },
        "score": {"nodes": nodes - rejected, "seconds": 0.0017, "plugins": [], "top": []},
        "bind": {"node": decision["node"], "seconds": 0.012} if decision["node"] else None,
    }


def shadow_report() -> Object:
    """Return what is known of a shadow that disagrees now and then."""
    return {
        "profile": "moorage",
        "since": BEGIN.isoformat(),
        "policyRevision": "3f1c9a7be0d2",
        "maxShare": 0.1,
        "share": 0.034,
        "agreement": 0.9375,
        "compared": 64,
        "agreed": 60,
        "disagreedFilter": 1,
        "disagreedWinner": 4,
        "failed": 0,
        "lastFailure": "",
        "stopped": False,
        "skipped": {"busy": 12, "share": 0},
        "reasons": [
            {"kind": "winner", "plugin": "ZoneSpread", "reason": "weighs more", "cycles": 4},
            {"kind": "filter", "plugin": "NodeAffinity", "reason": "not asked", "cycles": 1},
        ],
        "disagreements": [
            {
                "id": "00000046",
                "time": (BEGIN + timedelta(seconds=70)).isoformat(),
                "namespace": "batch",
                "pod": "worker-0070",
                "nodes": 50,
                "feasible": 12,
                "shadowFeasible": 14,
                "live": "node-0020",
                "shadow": "node-0031",
                "reasons": ["ZoneSpread adds 4.1 for node-0031"],
            }
        ],
    }


def routes(cluster: Cluster) -> list[web.RouteDef]:
    """Return the routes that the page asks, as the gateway's."""

    async def decisions(request: web.Request) -> web.Response:
        node = request.query.get("node", "")
        items = [each for each in cluster.decisions if node in ("", each["node"])]
        start = int(request.query.get("continue", 0))
        end = start + int(request.query.get("limit", 100))
        more = str(end) if end < len(items) else ""
        return web.json_response({"items": items[start:end], "continue": more})

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": begin\n\n")
        queue: asyncio.Queue[Object | None] = asyncio.Queue()
        cluster.clients.append(queue)
        try:
            while (decision := await queue.get()) is not None:
                event = f"id: {decision['id']}\nevent: decision\ndata: {json.dumps(decision)}\n\n"
                await response.write(event.encode())
        finally:
            cluster.clients.remove(queue)
        return response

    async def pod(request: web.Request) -> web.Response:
        key = request.match_info["namespace"], request.match_info["pod"]
        found = [each for each in cluster.decisions if (each["namespace"], each["pod"]) == key]
        if not found:
            return web.json_response(
                {"error": f"no decision about pod {'/'.join(key)}"}, status=404
            )
        events = [
            {
                "time": (BEGIN + timedelta(seconds=9)).isoformat(),
                "reason": "FailedScheduling",
                "note": "0/50 nodes are available: 50 Insufficient cpu.",
                "by": "default-scheduler",
            }
        ]
        attempts = [attempt(each, cluster.nodes) for each in found]
        shown = waiting(0, found[0]["reason"], pod="/".join(key), since="")
        return web.json_response(
            shown | {"attempts": attempts, "created": BEGIN.isoformat(), "events": events}
        )

    async def nodes(request: web.Request) -> web.Response:
        start, limit = int(request.query.get("offset", 0)), int(request.query["limit"])
        items = node_items(cluster.nodes)
        if not cluster.judged:
            items = [{"node": each["node"], "verdict": "feasible"} for each in items]
        plugins = {
            "filter": list(REASONS),
            "score": [{"plugin": plugin, "weight": weight} for plugin, weight in SCORES.items()],
        }
        page = items[start : start + limit]
        return web.json_response({"total": len(items), "plugins": plugins, "items": page})

    async def pending(request: web.Request) -> web.Response:
        search = request.query.get("search", "")
        without_node = [
            waiting(
                0,
                each["reason"],
                pod=f"{each['namespace']}/{each['pod']}",
                uid=each["uid"],
                since=each["time"],
                tried=1,
            )
            for each in cluster.decisions
            if each["outcome"] != "bound" and each["pod"] not in cluster.gone
        ]
        found = [each for each in [*cluster.waiting, *without_node] if search in each["pod"]]
        items = [each for each in found if not each["node"]]
        placed = [each for each in found if each["node"]] if search else []
        return web.json_response({"items": items, "placed": placed, "pods": len(items)})

    async def tiles(request: web.Request) -> web.Response:
        by = request.query["by"]
        nodes = [
            [f"node-{number:04d}", f"{by[-4:]}-{number % 3}", number % 11 / 10, 0.5, 4, 110, 0]
            for number in range(cluster.nodes + cluster.unnamed)
        ]
        labels = ["rack", "topology.kubernetes.io/zone"]
        total = len(nodes)
        return web.json_response({"by": by, "labels": labels, "total": total, "nodes": nodes})

    async def groups(_: web.Request) -> web.Response:
        return web.json_response({"items": cluster.groups})

    async def shadow(_: web.Request) -> web.Response:
        return web.json_response({"profiles": cluster.shadows})

    return [
        web.get("/shadow", shadow),
        web.get("/groups", groups),
        web.get("/map", tiles),
        web.get("/decisions/pending", pending),
        web.get("/decisions", decisions),
        web.get("/decisions/stream", stream),
        web.get("/decisions/{namespace}/{pod}", pod),
        web.get("/decisions/{namespace}/{pod}/{id}/nodes", nodes),
    ]


@asynccontextmanager
async def serving(cluster: Cluster) -> AsyncIterator[str]:
    app = web.Application()
    app.add_routes([*asset_routes(), *routes(cluster)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/inspector/"
    finally:
        await runner.cleanup()
