"""Puts the verbs together, and answers the calls that aiohttp reads: those that Go never makes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import structlog
from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry

from gateway.calls import Cycles
from gateway.edge.aliases import read_aliases
from gateway.edge.bodies import read_body, refusal, response
from gateway.edge.connection import Connections
from gateway.edge.exchange import Exchange
from gateway.edge.json.names import NodeNamesCache
from gateway.edge.json.nodes import NodesMemory
from gateway.edge.json.requests import Memory, PodMemory
from gateway.edge.metrics import EdgeMetrics, Verb
from gateway.edge.routes import Places
from gateway.edge.settings import EdgeSettings
from gateway.edge.verbs import (
    BindHandler,
    Context,
    FilterHandler,
    PreemptHandler,
    PrioritizeHandler,
)

log = structlog.get_logger()

_Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
_LOGGED_PATH = 200  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """What answers calls; `gateway.edge.server` listens for it.

    Attributes:
        handle: Answers a request that aiohttp read.
        connections: Answer all others.
        finish: Waits for the binds whose callers are gone; when nothing is answered any more.
        settings: Limits of the connections.
    """

    handle: _Handler
    connections: Connections
    finish: Callable[[], Awaitable[None]]
    settings: EdgeSettings


def make_app(cycles: Cycles, settings: EdgeSettings, registry: CollectorRegistry) -> App:
    """Return what answers kube-scheduler's calls through `cycles`.

    Raises:
        ConfigurationError: An alias is wrong, or its path is that of a verb.
    """
    metrics = EdgeMetrics(registry)
    nodes = NodesMemory(settings.given_nodes_remembered)
    memory = Memory(names=NodeNamesCache(), nodes=nodes, pods=PodMemory())
    context = Context(cycles=cycles, settings=settings, metrics=metrics, memory=memory)
    bind = BindHandler(context)
    handlers = (
        FilterHandler(context),
        PrioritizeHandler(context),
        PreemptHandler(context),
        bind,
    )
    exchanges = {handler.verb: Exchange(handler, settings, metrics) for handler in handlers}
    prefix = settings.extender_prefix
    places = Places(exchanges, prefix, read_aliases(settings.extender_alias, prefix))
    connections = Connections(places, settings.http_keep_alive)
    return App(
        handle=_Router(places, connections, metrics).handle,
        connections=connections,
        finish=partial(bind.finish, settings.shutdown_grace),
        settings=settings,
    )


class _Router:
    """Answers requests that aiohttp read; two look-ups are less work than its routes."""

    def __init__(self, places: Places, connections: Connections, metrics: EdgeMetrics) -> None:
        self._places = places
        self._connections = connections
        self._metrics = metrics

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, or refuse it with 404 or 405."""
        place, plugin = self._places.found(request.path)
        if place is None:
            return self._unknown(request.path)
        if request.method != hdrs.METH_POST:
            return self._wrong_method(place.verb, request.method)
        if hdrs.EXPECT in request.headers and not await _went_on(request):
            return refusal(417)
        exchange, arrival = place.exchange, asyncio.get_running_loop().time()
        body = read_body(request, exchange.limit)
        answer = response(await exchange.answer(body, plugin, arrival))
        if self._connections.draining or not request.content.at_eof():
            answer.force_close()
        return answer

    def _unknown(self, path: str) -> web.StreamResponse:
        self._metrics.bad_request("none", "unknown_path")
        known = self._places.known()
        log.warning("a call was to an unknown path", path=path[:_LOGGED_PATH], known=known)
        return refusal(404)

    def _wrong_method(self, verb: Verb, method: str) -> web.StreamResponse:
        self._metrics.bad_request(verb, "method")
        log.warning("a call was not a POST", verb=verb, method=method)
        return refusal(405, Allow="POST")


async def _went_on(request: web.BaseRequest) -> bool:
    """Tell a caller that waits for that to send the body."""
    if request.headers[hdrs.EXPECT].lower() != "100-continue":
        return False
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return True
