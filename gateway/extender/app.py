"""Puts the verbs at their paths."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from gateway.calls import Cycles
from gateway.extender.aliases import WITH_PLUGIN, Alias, read_aliases, verb_path
from gateway.extender.bodies import refusal
from gateway.extender.exchange import Connections, Exchange
from gateway.extender.metrics import EdgeMetrics
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

SETTINGS = web.AppKey("settings", EdgeSettings)
CONNECTIONS = web.AppKey("connections", Connections)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LOGGED_PATH = 200  # characters


def make_app(
    cycles: Cycles, settings: EdgeSettings, registry: CollectorRegistry
) -> web.Application:
    """Return the application that answers kube-scheduler's calls through `cycles`.

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
    app = web.Application()
    app[SETTINGS], app[CONNECTIONS] = settings, connections
    handlers: list[VerbHandler] = [
        FilterHandler(context),
        PrioritizeHandler(context),
        PreemptHandler(context),
        bind,
    ]
    aliases = read_aliases(settings.extender_alias, settings.extender_prefix)
    known: list[str] = []
    for handler in handlers:
        exchange = Exchange(handler, settings, metrics, connections)
        wrong_method = _wrong_method(handler, metrics)
        for path, handle in _paths(handler, exchange, settings.extender_prefix, aliases):
            _add(app, path, handle, wrong_method)
            known.append(path)
    app.router.add_route("*", "/{path:.*}", _unknown_path(known, metrics))

    async def finish_binds(_: web.Application) -> None:
        await bind.finish(settings.shutdown_grace)

    app.on_cleanup.append(finish_binds)
    return app


def _paths(
    handler: VerbHandler, exchange: Exchange, prefix: str, aliases: Sequence[Alias]
) -> Iterator[tuple[str, _Handler]]:
    root = verb_path(prefix, handler.verb)
    yield root, exchange.handle
    if handler.verb in WITH_PLUGIN:
        yield root + "/{plugin}", exchange.handle
    for alias in aliases:
        if alias.verb == handler.verb:
            yield alias.path, partial(exchange.handle, plugin=alias.plugin)


def _add(app: web.Application, path: str, handle: _Handler, wrong_method: _Handler) -> None:
    for written in (path, path + "/"):
        resource = app.router.add_resource(written)
        resource.add_route("POST", handle)
        resource.add_route("*", wrong_method)


def _wrong_method(handler: VerbHandler, metrics: EdgeMetrics) -> _Handler:
    async def refuse(request: web.Request) -> web.StreamResponse:
        metrics.bad_request(handler.verb, "method")
        log.warning("a call was not a POST", verb=handler.verb, method=request.method)
        return refusal(405, Allow="POST")

    return refuse


def _unknown_path(known: list[str], metrics: EdgeMetrics) -> _Handler:
    async def refuse(request: web.Request) -> web.StreamResponse:
        metrics.bad_request("none", "unknown_path")
        path = request.path[:_LOGGED_PATH]
        log.warning("a call was to an unknown path", path=path, known=known)
        return refusal(404)

    return refuse
