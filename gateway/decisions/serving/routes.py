"""The routes of decisions on the admin port."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from gateway.decisions.decisions import Decisions
from gateway.decisions.records import Decision
from gateway.decisions.serving.listing import Listing, PlaceOf
from gateway.decisions.serving.node_table import node_query, node_table
from gateway.decisions.serving.one_node import view
from gateway.decisions.serving.query import BadQueryError, checked, decision_query
from gateway.decisions.words.comparing import explained
from gateway.decisions.words.dominant import dominant
from gateway.decisions.words.facts import facts
from moorage_host.http.reading import may_read, require_read

LIST = "/decisions"
STREAM = "/decisions/stream"
POD = "/decisions/{namespace}/{pod}"
NODES = "/decisions/{namespace}/{pod}/{id}/nodes"

Hint = Callable[[str, str], Awaitable[str]]
"""Returns why there may be no decision about a pod, by its namespace and name."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def decision_routes(decisions: Decisions, place_of: PlaceOf, hint: Hint) -> list[web.RouteDef]:
    """Return the routes of decisions."""
    shown = _Decisions(decisions, place_of, hint)
    return [
        web.get(path, _checked(handler), allow_head=path != STREAM)
        for path, handler in (
            (LIST, shown.list),
            (STREAM, shown.stream),
            (POD, shown.of_pod),
            (NODES, shown.nodes),
        )
    ]


class _Decisions:
    def __init__(self, decisions: Decisions, place_of: PlaceOf, hint: Hint) -> None:
        self._decisions = decisions
        self._place_of = place_of
        self._hint = hint
        self._listing = Listing(decisions.log, place_of)

    async def list(self, request: web.Request) -> web.StreamResponse:
        query = decision_query(request.query.items())
        if query.namespace:
            await require_read(request, query.namespace)
        items, after = await self._listing.page(query, partial(may_read, request))
        return _json({"items": items, "continue": after})

    async def stream(self, request: web.Request) -> web.StreamResponse:
        checked(request.query.items(), ())
        item = self._listing.item
        return await self._decisions.stream.serve(request, item, partial(may_read, request))

    async def of_pod(self, request: web.Request) -> web.StreamResponse:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        await require_read(request, namespace)
        node = checked(request.query.items(), ("node",)).get("node", "")
        attempts = self._decisions.log.attempts(namespace, pod)
        if not attempts:
            text = f"there is no decision about pod {namespace}/{pod}"
            more = await self._hint(namespace, pod)
            return _error(404, f"{text}: {more}" if more else text)
        if node:
            return _json({"attempts": [self._on_node(each, node) for each in attempts]})
        # Only the newest attempt can have led to where the pod is.
        places = [self._place_of(attempts[0].uid), *("" for _ in attempts[1:])]
        shown = [self._shown(each, place) for each, place in zip(attempts, places, strict=True)]
        await _hide_sources(request, shown)
        return _json({"attempts": shown})

    async def nodes(self, request: web.Request) -> web.StreamResponse:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        await require_read(request, namespace)
        decision, query = request.match_info["id"], node_query(request.query.items())
        if all(each.id != decision for each in self._decisions.log.attempts(namespace, pod)):
            return _error(404, f"there is no decision {decision} about pod {namespace}/{pod}")
        arrays = self._decisions.arrays.get(decision)
        if arrays is None:
            return _error(
                410,
                f"the nodes of decision {decision} are not kept, or it has none: see "
                "--decision-arrays and --decision-array-memory",
            )
        # Thousands of nodes take milliseconds, in which cycles go on.
        return _json(await asyncio.to_thread(node_table, arrays, query))

    def _shown(self, decision: Decision, place: str) -> dict[str, Any]:
        content: dict[str, Any] = msgspec.to_builtins(decision)
        for phase in (content.get(name, {}) for name in ("filter", "score", "preempt")):
            versions = self._decisions.versions.of(phase.get("version", ""))
            for plugin in phase.get("plugins", ()):
                if version := versions.get(plugin["plugin"]):
                    plugin["version"] = version
        return {
            **content,
            "outcome": facts(decision).at(place).outcome,
            "reason": dominant(decision, place),
            "why": explained(decision, place),
        }

    def _on_node(self, decision: Decision, node: str) -> dict[str, Any]:
        return view(decision, node, self._decisions.arrays.get(decision.id))


async def _hide_sources(request: web.Request, shown: Iterable[dict[str, Any]]) -> None:
    """Leave out for which equal pod an answer was cached, if the caller may not read that one."""
    for phase in (each.get(name, {}) for each in shown for name in ("filter", "score", "preempt")):
        namespace, _, pod = phase.get("cachedFrom", "").partition("/")
        if pod and not await may_read(request, namespace):
            del phase["cachedFrom"]


def _checked(handler: Handler) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except BadQueryError as error:
            return _error(400, str(error))

    return answer


def _error(status: int, text: str) -> web.Response:
    return _json({"error": text}, status)


def _json(content: object, status: int = 200) -> web.Response:
    body = msgspec.json.encode(content)
    return web.Response(body=body, status=status, content_type="application/json")
