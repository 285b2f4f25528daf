"""Serves decisions on the admin port: of a pod, or of a pod about one node."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from gateway.decisions.comparing import explained
from gateway.decisions.dominant import dominant
from gateway.decisions.log import DecisionLog
from gateway.decisions.per_node import view
from gateway.decisions.records import Decision
from moorage_host.http.reading import require_read

PATH = "/decisions/{namespace}/{pod}"

RowAt = Callable[[str, int], int | None]
"""Returns the row that a node had in a generation, None if it is newer or gone."""

PlaceOf = Callable[[str], str]
"""Returns the node that the pod with a uid is on, "" for none."""

Hint = Callable[[str, str], Awaitable[str]]
"""Returns why there may be no decision about a pod, by its namespace and name."""


def decision_route(
    decisions: DecisionLog, row_at: RowAt, place_of: PlaceOf, hint: Hint
) -> web.RouteDef:
    """Return the route of `GET /decisions/NAMESPACE/POD`, with or without `?node=NAME`."""

    def show(decision: Decision, place: str) -> dict[str, Any]:
        content = msgspec.to_builtins(decision)
        return {
            **content,
            "reason": dominant(decision, place),
            "why": explained(decision, place),
        }

    def show_node(decision: Decision, node: str) -> dict[str, Any]:
        row = row_at(node, decision.generation)
        return view(decision, node, row, decisions.verdicts(decision))

    async def answer(request: web.Request) -> web.Response:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        await require_read(request, namespace)
        attempts = decisions.attempts(namespace, pod)
        if not attempts:
            text = f"there is no decision about pod {namespace}/{pod}"
            more = await hint(namespace, pod)
            error = f"{text}: {more}" if more else text
            return web.json_response({"error": error}, status=404)
        node = request.query.get("node", "")
        # Only the newest attempt can have led to where the pod is.
        places = [place_of(attempts[0].uid), *("" for _ in attempts[1:])]
        shown = [
            show_node(each, node) if node else show(each, place)
            for each, place in zip(attempts, places, strict=True)
        ]
        return web.json_response({"attempts": shown})

    return web.get(PATH, answer)
