"""Puts the verbs at their paths.

Two look-ups and no more: aiohttp's own applications and routes take a tenth of a millisecond for
each call, more than is needed to read it.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import structlog
from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry

from gateway.calls import Cycles
from gateway.extender.aliases import WITH_PLUGIN, Alias, read_aliases, verb_path
from gateway.extender.bodies import refusal
from gateway.extender.exchange import Connections, Exchange
from gateway.extender.metrics import EdgeMetrics, Verb
from gateway.extender.prepared import PreparedAnswers
from gateway.extender.settings import EdgeSettings
from gateway.extender.verbs import (
    BindHandler,
    Context,
    FilterHandler,
    PreemptHandler,
    PrioritizeHandler,
    VerbHandler,
)
from gateway.wire.names import NodeNamesMemory
from gateway.wire.nodes import NodesMemory
from gateway.wire.requests import Memory, PodMemory

log = structlog.get_logger()

_Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
_LOGGED_PATH = 200  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """What answers kube-scheduler's calls; `gateway.extender.server` listens for it.

    Attributes:
        handle: Answers a request.
        finish: Waits for the binds whose callers are gone; when nothing is answered any more.
        settings: Limits of the connections.
        connections: Whether they may stay open.
    """

    handle: _Handler
    finish: Callable[[], Awaitable[None]]
    settings: EdgeSettings
    connections: Connections


def make_app(cycles: Cycles, settings: EdgeSettings, registry: CollectorRegistry) -> App:
    """Return what answers kube-scheduler's calls through `cycles`.

    Raises:
        ConfigurationError: An alias is wrong, or its path is that of a verb.
    """
    metrics, connections = EdgeMetrics(registry), Connections()
    nodes = NodesMemory(settings.given_nodes_remembered)
    memory = Memory(names=NodeNamesMemory(), nodes=nodes, pods=PodMemory())
    prepared = PreparedAnswers(omit_zeros=settings.omit_zero_scores)
    context = Context(
        cycles=cycles, settings=settings, metrics=metrics, memory=memory, prepared=prepared
    )
    bind = BindHandler(context)
    handlers = (
        FilterHandler(context),
        PrioritizeHandler(context),
        PreemptHandler(context),
        bind,
    )
    aliases = read_aliases(settings.extender_alias, settings.extender_prefix)
    places: dict[str, _Place] = {}
    for handler in handlers:
        exchange = Exchange(handler, settings, metrics, connections)
        places.update(_places(handler, exchange, settings.extender_prefix, aliases))
    return App(
        handle=_Router(places, metrics).handle,
        finish=partial(bind.finish, settings.shutdown_grace),
        settings=settings,
        connections=connections,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What is at a path, and below it: whether plugins can be named there."""

    verb: Verb
    exchange: Exchange
    plugin: str = ""
    has_plugins: bool = False


def _places(
    handler: VerbHandler, exchange: Exchange, prefix: str, aliases: list[Alias]
) -> Iterator[tuple[str, _Place]]:
    verb = handler.verb
    root = _Place(verb=verb, exchange=exchange, has_plugins=verb in WITH_PLUGIN)
    yield verb_path(prefix, verb), root
    for alias in aliases:
        if alias.verb == verb:
            yield alias.path, _Place(verb=verb, exchange=exchange, plugin=alias.plugin)


class _Router:
    """Finds who answers a request."""

    def __init__(self, places: Mapping[str, _Place], metrics: EdgeMetrics) -> None:
        self._places = places
        self._metrics = metrics

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, or refuse it with 404 or 405."""
        place, plugin = self._places.get(request.raw_path), ""
        if place is None:
            place, plugin = self._found(request.path)
        if place is None:
            return self._unknown(request.path)
        if request.method != hdrs.METH_POST:
            return self._wrong_method(place.verb, request.method)
        if hdrs.EXPECT in request.headers and not await _went_on(request):
            return refusal(417)
        return await place.exchange.handle(request, plugin or place.plugin)

    def _found(self, path: str) -> tuple[_Place | None, str]:
        """Return what is at a path that is not written as it could be, or names a plugin."""
        path = path.removesuffix("/")
        root, _, plugin = path.rpartition("/")
        above = self._places.get(root)
        if above is not None and above.has_plugins and plugin:
            return above, plugin
        return self._places.get(path), ""

    def _unknown(self, path: str) -> web.StreamResponse:
        self._metrics.bad_request("none", "unknown_path")
        known = list(self._places)
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
