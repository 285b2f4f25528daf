"""The routes of decisions on the admin port."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
from aiohttp import web

from gateway.decisions.capacity import pod_rejections
from gateway.decisions.explaining import AskedOfPod, Explainer
from gateway.decisions.explanation import Explanation
from gateway.decisions.listing import (
    COMPARED_AT_ONCE,
    Listing,
    matches,
    oldest_first,
    with_a_node,
)
from gateway.decisions.log import UNPACKED, DecisionLog
from gateway.decisions.nodes import KeptArrays, node_table
from gateway.decisions.query import (
    DEFAULT_LIMIT,
    MOST,
    DecisionQuery,
    Limit,
    Parameters,
    TablePart,
    refusing,
)
from gateway.decisions.stream import DecisionStream
from gateway.settings import GatewaySettings
from moorage_host.http.callers import may_read, readable, require_read

LIST = "/decisions"
STREAM = "/decisions/stream"
PENDING = "/decisions/pending"
REJECTED = "/decisions/rejected"
POD = "/decisions/{namespace}/{pod}"
NODES = "/decisions/{namespace}/{pod}/{id}/nodes"

POD_BYTES = 6_700
"""Memory for decisions by which pods are counted: most have one or two, of 4 kB each."""

ATTEMPTS = 5
"""Attempts that are kept for each pod, the newest."""

MOST_WORDS = 10
"""Words of a search that count."""


class PendingQuery(Parameters, frozen=True):
    """Which waiting pods are wanted, of one namespace or, for "", of all."""

    namespace: str = ""
    limit: Limit = DEFAULT_LIMIT
    search: str = ""


class Decisions:
    """What is kept of cycles for people, within limits of count and memory.

    Attributes:
        log: What was decided about each pod, and why.
        arrays: What the newest attempts found out about each node.
        stream: Those who follow decisions.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        memory = settings.decision_memory
        pods = max(UNPACKED, memory // POD_BYTES)
        self.log = DecisionLog(pods=pods, attempts=ATTEMPTS, memory=memory)
        self.arrays = KeptArrays(
            count=settings.decision_arrays, memory=settings.decision_array_memory
        )
        self.stream = DecisionStream(
            clients=settings.decision_clients, waiting=settings.decision_client_queue
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRoutes:
    """Answers about decisions, with what they are made of."""

    decisions: Decisions
    explainer: Explainer

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes."""
        return [
            web.get(path, refusing(handler), allow_head=path != STREAM)
            for path, handler in (
                (LIST, self._list),
                (STREAM, self._stream),
                (PENDING, self._pending),
                (REJECTED, self._rejected),
                (POD, self._of_pod),
                (NODES, self._nodes),
            )
        ]

    @property
    def _listing(self) -> Listing:
        return Listing(self.decisions.log, self.decisions.arrays, self.explainer.state.bound_to)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        query = DecisionQuery.of(request)
        if query.namespace:
            await require_read(request, query.namespace)
        items, after = await self._listing.page(query, partial(may_read, request))
        return _json({"items": items, "continue": after})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        Parameters.of(request)
        item = self._listing.item
        return await self.decisions.stream.serve(request, item, partial(may_read, request))

    async def _pending(self, request: web.Request) -> web.StreamResponse:
        """Answer why each pod without a node has none, those that wait longest first.

        A search compares names, and of the first `MOST` pods the reasons too. It also finds the
        names of pods that have a node.
        """
        query = PendingQuery.of(request)
        words = query.search.lower().split()[:MOST_WORDS]
        if namespace := query.namespace:
            await require_read(request, namespace)
        pods = await oldest_first(self.explainer.state, self.explainer.waiting, namespace)
        shown = await readable(request, (pod.namespace for pod in pods))
        pods = [pod for pod in pods if pod.namespace in shown]
        explaining = await self.explainer.listing(partial(may_read, request))
        items: list[Explanation] = []
        for count, pod in enumerate(pods):
            if len(items) == query.limit:
                break
            if count % COMPARED_AT_ONCE == 0:
                await asyncio.sleep(0)  # cycles go on
            named = matches(words, pod)
            if not named and count >= MOST:
                continue
            await asyncio.sleep(0)
            if (found := await explaining(pod)) is not None and (
                named or matches(words, pod, found.reason, pod.spec.scheduler_name)
            ):
                items.append(found)
        placed = await self._placed(request, words, namespace) if words else []
        response = _json({"items": items, "pods": len(pods), "placed": placed})
        response.enable_compression()
        return response

    async def _rejected(self, request: web.Request) -> web.StreamResponse:
        """Answer for which waiting pods Moorage has rejected nodes, and what would cure that."""
        Parameters.of(request)
        explainer = self.explainer
        found = await pod_rejections(explainer.state, explainer.waiting, self.decisions.log)
        shown = await readable(request, (each.namespace for each in found))
        response = _json({"items": [each for each in found if each.namespace in shown]})
        response.enable_compression()
        return response

    async def _placed(
        self, request: web.Request, words: Sequence[str], namespace: str
    ) -> Sequence[Explanation]:
        """Return pods with a node that a search finds and the caller may read."""
        found: list[Explanation] = []
        allowed: dict[str, bool] = {}
        async for pod in with_a_node(self.explainer.state, words):
            if pod.namespace not in allowed:
                is_wanted = namespace in ("", pod.namespace)
                allowed[pod.namespace] = is_wanted and await may_read(request, pod.namespace)
            if allowed[pod.namespace]:
                found.append(self.explainer.placed(pod))
            if len(found) == DEFAULT_LIMIT:
                break
        return found

    async def _of_pod(self, request: web.Request) -> web.StreamResponse:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        await require_read(request, namespace)
        asked = AskedOfPod.of(request)
        found = await self.explainer.of_pod(namespace, pod, asked, partial(may_read, request))
        return _json(found) if isinstance(found, Explanation) else _error(404, found)

    async def _nodes(self, request: web.Request) -> web.StreamResponse:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        await require_read(request, namespace)
        decision = request.match_info["id"]
        part = TablePart.of(request).slice
        if all(each.id != decision for each in self.decisions.log.attempts(namespace, pod)):
            return _error(404, f"there is no decision {decision} about pod {namespace}/{pod}")
        arrays = self.decisions.arrays.get(decision)
        if arrays is None:
            return _error(
                410,
                f"the nodes of decision {decision} are not kept, or it has none",
            )
        # Thousands of nodes take milliseconds, in which cycles go on.
        return _json(await asyncio.to_thread(node_table, arrays, part))


def _error(status: int, text: str) -> web.Response:
    return _json({"error": text}, status)


def _json(content: object, status: int = 200) -> web.Response:
    body = msgspec.json.encode(content)
    return web.Response(body=body, status=status, content_type="application/json")
