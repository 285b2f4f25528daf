"""The routes of decisions on the admin port."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec
from aiohttp import web

from gateway.cluster.pods import Waiting
from gateway.cluster.state import ClusterState
from gateway.cycle.decision import Decision
from gateway.decisions.known import Known, Object, last_seen, preemptor_of, silence
from gateway.decisions.listing import (
    COMPARED_AT_ONCE,
    Listing,
    as_shown,
    item,
    matches,
    oldest_first,
    with_a_node,
)
from gateway.decisions.log import DecisionLog
from gateway.decisions.nodes import MOST_NODES, KeptArrays, node_table, view
from gateway.decisions.query import (
    DEFAULT_LIMIT,
    MOST,
    BadQueryError,
    checked,
    decision_query,
    number,
    part_query,
    refusing,
)
from gateway.decisions.sentences import facts, sentences
from gateway.decisions.stream import DecisionStream
from gateway.decisions.why import Explanation, explanation, reporter
from gateway.policy.policy import PolicyHolder
from gateway.settings import GatewaySettings
from moorage_host.http.callers import may_read, readable, require_read
from moorage_host.kube import KubeClient, KubeError

LIST = "/decisions"
STREAM = "/decisions/stream"
PENDING = "/decisions/pending"
POD = "/decisions/{namespace}/{pod}"
NODES = "/decisions/{namespace}/{pod}/{id}/nodes"

SECONDS = 2.0
"""How long the API server may take to show a pod; nothing is concluded from it after that."""

ATTEMPTS = 5
"""Attempts that are kept for each pod, the newest."""

MOST_HOLDERS = 100
"""Pods among which those are looked for that hold nodes, the newest ones."""

MOST_EVENTS = 50
"""Events of a pod that are read."""

MOST_WORDS = 10
"""Words of a search that count."""

PodOf = Callable[[str, str], Awaitable[Object | None]]
"""Returns a pod by namespace and name: empty if there is none, None if the API server is silent."""

BindOf = Callable[[str], Object]
"""Returns the bind of a pod that is under way, by uid: see `Known.bind`."""

IsOutdated = Callable[[str], bool]
"""Returns whether nodes of a pod have changed since its verdict, by uid."""

EventsOf = Callable[[Object], Awaitable[Sequence[Object] | None]]
"""Returns the Events of a pod, newest first; None if they may not be read."""


async def read_events(client: KubeClient, pod: Object) -> Sequence[Object] | None:
    """Return the Events of a pod; see `EventsOf`."""
    path = f"/apis/events.k8s.io/v1/namespaces/{pod['metadata']['namespace']}/events"
    query = {"fieldSelector": f"regarding.uid={pod['metadata']['uid']}", "limit": str(MOST_EVENTS)}
    try:
        response = await client.request("GET", path, query=query, timeout=SECONDS)
        items: list[Object] = msgspec.json.decode(response.check().body)["items"] or []
    except (KubeError, TimeoutError):
        return None
    return sorted(items, key=last_seen, reverse=True)


async def read_pod(client: KubeClient, namespace: str, name: str) -> Object | None:
    """Return a pod; see `PodOf`. The gateway may list pods, not get one."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
    query = {"fieldSelector": f"metadata.name={name}"}
    try:
        response = await client.request("GET", path, query=query, timeout=SECONDS)
        items = msgspec.json.decode(response.check().body)["items"] or [{}]
    except (KubeError, TimeoutError):
        return None
    pod: Object = items[0]
    return pod


class Decisions:
    """What is kept of cycles for people, within limits of count and memory.

    Attributes:
        log: What was decided about each pod, and why.
        arrays: What the newest attempts found out about each node.
        stream: Those who follow decisions.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self.log = DecisionLog(
            pods=settings.decision_pods, attempts=ATTEMPTS, memory=settings.decision_memory
        )
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
    state: ClusterState
    pod_of: PodOf
    events_of: EventsOf
    bind_of: BindOf
    is_outdated: IsOutdated
    policy: PolicyHolder
    waiting: Mapping[str, Waiting]

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes."""
        return [
            web.get(path, refusing(handler), allow_head=path != STREAM)
            for path, handler in (
                (LIST, self._list),
                (STREAM, self._stream),
                (PENDING, self._pending),
                (POD, self._of_pod),
                (NODES, self._nodes),
            )
        ]

    @property
    def _listing(self) -> Listing:
        return Listing(self.decisions.log, self.decisions.arrays, self.state.bound_to)

    async def _list(self, request: web.Request) -> web.StreamResponse:
        query = decision_query(request.query.items())
        if query.namespace:
            await require_read(request, query.namespace)
        items, after = await self._listing.page(query, partial(may_read, request))
        return _json({"items": items, "continue": after})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        checked(request.query.items(), ())
        item = self._listing.item
        return await self.decisions.stream.serve(request, item, partial(may_read, request))

    async def _pending(self, request: web.Request) -> web.StreamResponse:
        """Answer why each pod without a node has none, those that wait longest first.

        A search compares names, and of the first `MOST` pods the reasons too. It also finds the
        names of pods that have a node.
        """
        query = checked(request.query.items(), ("namespace", "limit", "search"))
        words = query.get("search", "").lower().split()[:MOST_WORDS]
        limit = number(query, "limit", DEFAULT_LIMIT, least=1, most=MOST)
        if namespace := query.get("namespace", ""):
            await require_read(request, namespace)
        pods = await oldest_first(self.state, self.waiting, namespace)
        shown = await readable(request, (pod.namespace for pod in pods))
        pods = [pod for pod in pods if pod.namespace in shown]
        holders = await self._holders(request)
        items: list[Object] = []
        for count, pod in enumerate(pods):
            if len(items) == limit:
                break
            if count % COMPARED_AT_ONCE == 0:
                await asyncio.sleep(0)  # cycles go on
            named = matches(words, pod)
            if not named and count >= MOST:
                continue
            await asyncio.sleep(0)
            if found := self.waiting.get(pod.uid):
                known = self._known(as_shown(pod, found), pod.uid, holders, missing=found.claims)
                why = explanation(known)
                if named or matches(words, pod, why.reason, pod.spec.scheduler_name):
                    items.append(item(pod, known, why))
        placed = await self._placed(request, words, namespace) if words else []
        response = _json({"items": items, "pods": len(pods), "placed": placed})
        response.enable_compression()
        return response

    async def _placed(
        self, request: web.Request, words: Sequence[str], namespace: str
    ) -> Sequence[Object]:
        """Return pods with a node that a search finds and the caller may read."""
        found: list[Object] = []
        allowed: dict[str, bool] = {}
        async for pod in with_a_node(self.state, words):
            if pod.namespace not in allowed:
                is_wanted = namespace in ("", pod.namespace)
                allowed[pod.namespace] = is_wanted and await may_read(request, pod.namespace)
            if allowed[pod.namespace]:
                known, node = self._known(as_shown(pod, Waiting()), pod.uid, ()), pod.spec.node_name
                why = known.attempts[0]["reason"] if known.attempts else known.silence
                shown = item(pod, known, Explanation(pod="", place=f"is on {node}", reason=why))
                found.append({**shown, "pod": f"{pod.namespace}/{pod.name}", "node": node})
            if len(found) == DEFAULT_LIMIT:
                break
        return found

    async def _of_pod(self, request: web.Request) -> web.StreamResponse:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        await require_read(request, namespace)
        query = checked(request.query.items(), ("node", "explain"))
        if query.get("explain", "true") != "true":
            raise BadQueryError(f"explain is true, not {query['explain'][:100]}")
        attempts = self.decisions.log.attempts(namespace, pod)
        if "explain" in query:
            found = await self.pod_of(namespace, pod)
            if attempts or found:
                return await self._explained(request, found, attempts, query.get("node", ""))
            return self._unknown(namespace, pod, found)
        if not attempts:
            return self._unknown(namespace, pod, await self.pod_of(namespace, pod))
        if node := query.get("node"):
            return _json({"attempts": [self._on_node(each, node) for each in attempts]})
        place = self.state.bound_to(attempts[0].uid)
        shown = self._all_shown(attempts, place)
        await _hide_sources(request, shown)
        return _json({"attempts": shown})

    async def _explained(
        self, request: web.Request, pod: Object | None, attempts: Sequence[Decision], node: str
    ) -> web.Response:
        """Answer why a pod is where it is, with the attempts on this very pod.

        If the API server does not show the pod, there are just the attempts.
        """
        uid = pod["metadata"]["uid"] if pod else attempts[0].uid
        events = await self.events_of(pod) if pod else ()
        known = self._known(
            pod or _as_decided(attempts[0]),
            uid,
            await self._holders(request),
            node=node,
            is_gone=not pod,
            events=events or (),
            preemptor=await self._preemptor(request, events or ()),
        )
        await _hide_sources(request, known.attempts)
        return _json(
            {
                "attempts": known.attempts,
                "views": known.views,
                "noAttempts": known.silence,
                "policyRevision": known.revision,
                "bind": known.bind,
                "holders": known.holders,
                "isOutdated": known.is_outdated,
                "created": known.pod["metadata"].get("creationTimestamp", ""),
                "events": None if events is None else [_event(each) for each in events],
                "explanation": None if pod is None else explanation(known).content(),
            }
        )

    def _known(
        self,
        pod: Object,
        uid: str,
        holders: Sequence[Object],
        *,
        node: str = "",
        **more: Any,
    ) -> Known:
        """Return what is known about a pod, with the attempts on this very pod."""
        metadata, policy = pod["metadata"], self.policy
        attempts = self.decisions.log.attempts(metadata["namespace"], metadata["name"])
        attempts = [each for each in attempts if each.uid == uid]
        place = pod["spec"].get("nodeName") or self.state.bound_to(uid)
        return Known(
            pod=pod,
            attempts=self._all_shown(attempts, place),
            silence="" if attempts else silence(pod, policy.profiles),
            revision=policy.revision,
            node=node,
            views=[self._on_node(each, node) for each in attempts] if node else (),
            lost_node=bool(place) and place not in self.state.rows.of,
            bind=self.bind_of(uid),
            is_outdated=self.is_outdated(uid),
            holders=() if place else [each for each in holders if each["uid"] != uid],
            **more,
        )

    async def _preemptor(self, request: web.Request, events: Sequence[Object]) -> str:
        """Return for which pod one with these Events is evicted, if the caller may read that."""
        pod = self.state.pods.get(preemptor_of(events))
        if pod is None or not await may_read(request, pod.namespace):
            return ""
        return f"{pod.namespace}/{pod.name}"

    async def _holders(self, request: web.Request) -> Sequence[Object]:
        """Return which pods that the caller may read hold nodes; see `Known.holders`."""
        found = []
        for pod in self.state.held()[-MOST_HOLDERS:]:
            attempts = self.decisions.log.of_pod(pod.namespace, pod.name)
            claim = attempts[0].decision.claim if attempts else None
            if claim and await may_read(request, pod.namespace):
                place = {"pod": f"{pod.namespace}/{pod.name}", "node": pod.spec.node_name}
                found.append({**place, "uid": pod.uid, "plugins": claim.plugins})
        return found

    def _unknown(self, namespace: str, name: str, pod: Object | None) -> web.Response:
        text = f"there is no decision about pod {namespace}/{name}"
        if pod is None:
            return _error(404, text)
        more = silence(pod, self.policy.profiles) if pod else "there is no such pod"
        return _error(404, f"{text}: {more}")

    def _all_shown(self, attempts: Sequence[Decision], place: str) -> Sequence[dict[str, Any]]:
        # Only the newest attempt can have led to where the pod is.
        places = [place, *("" for _ in attempts[1:])][: len(attempts)]
        return [self._shown(each, place) for each, place in zip(attempts, places, strict=True)]

    async def _nodes(self, request: web.Request) -> web.StreamResponse:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        await require_read(request, namespace)
        decision = request.match_info["id"]
        part = part_query(request.query.items(), limit=DEFAULT_LIMIT, most=MOST_NODES)
        if all(each.id != decision for each in self.decisions.log.attempts(namespace, pod)):
            return _error(404, f"there is no decision {decision} about pod {namespace}/{pod}")
        arrays = self.decisions.arrays.get(decision)
        if arrays is None:
            return _error(
                410,
                f"the nodes of decision {decision} are not kept, or it has none: see "
                "--decision-arrays and --decision-array-memory",
            )
        # Thousands of nodes take milliseconds, in which cycles go on.
        return _json(await asyncio.to_thread(node_table, arrays, part))

    def _shown(self, decision: Decision, place: str) -> dict[str, Any]:
        content: dict[str, Any] = msgspec.to_builtins(decision)
        for phase in (content.get(name, {}) for name in ("filter", "score", "preempt")):
            versions = self.policy.versions.of(phase.get("version", ""))
            for plugin in phase.get("plugins", ()):
                if version := versions.get(plugin["plugin"]):
                    plugin["version"] = version
        why = sentences(decision, place, self.decisions.arrays.totals_of(decision.id))
        return {
            **content,
            "outcome": facts(decision).at(place).outcome,
            "reason": next(iter(why), ""),
            "why": why,
        }

    def _on_node(self, decision: Decision, node: str) -> dict[str, Any]:
        return view(decision, node, self.decisions.arrays.get(decision.id))


def _event(event: Object) -> Object:
    return {
        "time": last_seen(event),
        "reason": event.get("reason", ""),
        "note": event.get("note", ""),
        "by": reporter(event),
    }


def _as_decided(decision: Decision) -> Object:
    """Return what a decision still shows of a pod that exists no more."""
    metadata = {"namespace": decision.namespace, "name": decision.pod, "uid": decision.uid}
    return {"metadata": metadata, "spec": {}}


async def _hide_sources(request: web.Request, shown: Iterable[Any]) -> None:
    """Leave out for which equal pod an answer was cached, if the caller may not read that one."""
    for phase in (each.get(name, {}) for each in shown for name in ("filter", "score", "preempt")):
        namespace, _, pod = phase.get("cachedFrom", "").partition("/")
        if pod and not await may_read(request, namespace):
            del phase["cachedFrom"]


def _error(status: int, text: str) -> web.Response:
    return _json({"error": text}, status)


def _json(content: object, status: int = 200) -> web.Response:
    body = msgspec.json.encode(content)
    return web.Response(body=body, status=status, content_type="application/json")
