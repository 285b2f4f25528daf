"""Puts the verbs at their paths."""

from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from gateway.calls import Cycles
from gateway.extender.bodies import refusal
from gateway.extender.exchange import Connections, Exchange
from gateway.extender.metrics import EdgeMetrics
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
from gateway.wire.requests import Memory

log = structlog.get_logger()

SETTINGS = web.AppKey("settings", EdgeSettings)
CONNECTIONS = web.AppKey("connections", Connections)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LOGGED_PATH = 200  # characters


def make_app(
    cycles: Cycles, settings: EdgeSettings, registry: CollectorRegistry
) -> web.Application:
    """Return the application that answers kube-scheduler's calls through `cycles`."""
    metrics, connections = EdgeMetrics(registry), Connections()
    nodes = NodesMemory(settings.given_nodes_remembered)
    memory = Memory(names=NodeNamesMemory(), nodes=nodes)
    context = Context(cycles=cycles, settings=settings, metrics=metrics, memory=memory)
    bind = BindHandler(context)
    app = web.Application()
    app[SETTINGS], app[CONNECTIONS] = settings, connections
    handlers: list[VerbHandler] = [
        FilterHandler(context),
        PrioritizeHandler(context),
        PreemptHandler(context),
        bind,
    ]
    known = []
    for handler in handlers:
        exchange = Exchange(handler, settings, metrics, connections)
        known += _add(app, handler, exchange.handle, settings.extender_prefix, metrics)
    app.router.add_route("*", "/{path:.*}", _unknown_path(known, metrics))

    async def finish_binds(_: web.Application) -> None:
        await bind.finish(settings.shutdown_grace)

    app.on_cleanup.append(finish_binds)
    return app


def _add(
    app: web.Application, handler: VerbHandler, handle: _Handler, prefix: str, metrics: EdgeMetrics
) -> list[str]:
    root = f"/{prefix.strip('/')}/{handler.verb}".replace("//", "/")
    paths = [root]
    if handler.verb in ("filter", "prioritize"):
        paths.append(root + "/{plugin}")
    for path in (*paths, *(path + "/" for path in paths)):
        resource = app.router.add_resource(path)
        resource.add_route("POST", handle)
        resource.add_route("*", _wrong_method(handler, metrics))
    return paths


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
