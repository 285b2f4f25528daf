"""The routes of decisions and groups on the admin port, and the stream of decisions that come."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from gateway.cycle import Cycle
from gateway.cycle.decision import Decision, DecisionItem, GroupItem
from gateway.decisions.capacity import pod_rejections
from gateway.decisions.explaining import AskedOfPod, Explainer
from gateway.decisions.explanation import Explanation
from gateway.decisions.log import UNPACKED, DecisionLog
from gateway.decisions.nodes import KeptArrays, node_table
from gateway.decisions.query import (
    COMPARED_AT_ONCE,
    DEFAULT_LIMIT,
    MOST,
    DecisionQuery,
    Limit,
    Listing,
    MayRead,
    Parameters,
    TablePart,
    matches,
    oldest_first,
    refusing,
    with_a_node,
)
from gateway.decisions.sentences import group_evidence, group_sentence, group_steps
from gateway.settings import GatewaySettings
from moorage_host.http.callers import UncheckedError, may_read, readable, require_read

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

LOOK_SECONDS = 1.0
"""How often it is looked whether a client has left: until something is sent, nothing else shows."""

HEARTBEAT_LOOKS = 15
"""Looks after which a comment is sent if nothing else is, so that proxies keep the connection."""

HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


class PendingQuery(Parameters, frozen=True):
    """Which waiting pods are wanted, of one namespace or, for "", of all."""

    namespace: str = ""
    limit: Limit = DEFAULT_LIMIT
    search: str = ""


class _Follower:
    """Those decisions that one client has not been sent; the oldest are left out if too many."""

    def __init__(self, limit: int) -> None:
        self.waiting: deque[Decision] = deque(maxlen=limit)
        self.missed = 0
        self.news = asyncio.Event()

    def note(self, decision: Decision) -> None:
        if len(self.waiting) == self.waiting.maxlen:
            self.missed += 1
        self.waiting.append(decision)
        self.news.set()

    def take(self) -> tuple[list[Decision], int]:
        decisions, missed = list(self.waiting), self.missed
        self.waiting.clear()
        self.missed = 0
        self.news.clear()
        return decisions, missed


class DecisionStream:
    """The clients that follow decisions; an observer of cycles."""

    def __init__(self, *, clients: int, waiting: int) -> None:
        """Limits the clients, and the decisions that may wait for each."""
        self._clients = clients
        self._waiting = waiting
        self._followers: set[_Follower] = set()

    def __len__(self) -> int:
        return len(self._followers)

    def on_cycle_end(self, cycle: Cycle) -> None:
        """Send the decision to all clients."""
        for follower in self._followers:
            follower.note(cycle.decision)

    def bound(self, decision: Decision) -> None:
        """Send the decision again."""
        for follower in self._followers:
            follower.note(decision)

    async def serve(
        self,
        request: web.Request,
        item: Callable[[Decision], DecisionItem],
        may_read: MayRead,
    ) -> web.StreamResponse:
        """Send decisions, as *item* shows them, until the client leaves."""
        if len(self._followers) >= self._clients:
            text = f"{self._clients} clients follow decisions already: try again later"
            return web.json_response({"error": text}, status=503, headers={"Retry-After": "5"})
        follower = _Follower(self._waiting)
        self._followers.add(follower)
        try:
            response = web.StreamResponse(headers=HEADERS)
            await response.prepare(request)
            await response.write(b": decisions\n\n")
            while True:
                await _until_news(follower, request)
                if events := await _events(follower, item, may_read):
                    await response.write(events)
        except (ConnectionError, UncheckedError):
            return response
        finally:
            self._followers.discard(follower)


async def _until_news(follower: _Follower, request: web.Request) -> None:
    """Wait for decisions, at most until a heartbeat is due; raises ConnectionError."""
    for _ in range(HEARTBEAT_LOOKS):
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await follower.news.wait()
        except TimeoutError:
            if request.transport is None:
                raise ConnectionResetError("the client has left") from None
        else:
            return


async def _events(
    follower: _Follower, item: Callable[[Decision], DecisionItem], may_read: MayRead
) -> bytes:
    """Return the events of the decisions that wait; a comment if none do.

    Nothing if the client may read none of them: not even that there are any.
    """
    decisions, missed = follower.take()
    if not decisions:
        return b": none\n\n"
    events = [b'event: missed\ndata: {"decisions":%d}\n\n' % missed] if missed else []
    events += [_event(item(each)) for each in decisions if await may_read(each.namespace)]
    return b"".join(events)


def _event(item: DecisionItem) -> bytes:
    return b"event: decision\nid: %s\ndata: %s\n\n" % (item.id.encode(), msgspec.json.encode(item))


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


def _group_shown(item: GroupItem) -> dict[str, Any]:
    """Return a group as lists show it, in sentences too: which group waits for what since when."""
    content: dict[str, Any] = msgspec.to_builtins(item)
    group = item.group
    content["sentence"] = group_sentence(group)
    content["evidence"], content["next"] = list(group_evidence(group)), group_steps(group)
    if group.fits and item.bound >= group.min_count:
        content["sentence"] = f"group {group.name} runs: {item.bound} of {group.members} are bound"
    elif item.released and not item.holding:
        content["sentence"] += (
            f"; it let go of its nodes after {group.timeout:g} s, when {item.bound} were bound"
        )
    return content


def group_route(items: Callable[[], Sequence[GroupItem]]) -> web.RouteDef:
    """Return the route of all groups, the newest first; callers see those of their namespaces."""

    async def groups(request: web.Request) -> web.Response:
        found = [each for each in reversed(items()) if await _may_see(request, each)]
        return web.json_response({"items": list(map(_group_shown, found))})

    return web.get("/groups", groups)


async def _may_see(request: web.Request, item: GroupItem) -> bool:
    return await may_read(request, item.pod.partition("/")[0])


def _error(status: int, text: str) -> web.Response:
    return _json({"error": text}, status)


def _json(content: object, status: int = 200) -> web.Response:
    body = msgspec.json.encode(content)
    return web.Response(body=body, status=status, content_type="application/json")
