"""Puts the verbs together, and leads each request to the one that its path names."""

import structlog
from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry

from gateway.calls import Cycles, LastCalls
from gateway.edge.aliases import read_aliases
from gateway.edge.calls import Calls
from gateway.edge.exchange import Exchange
from gateway.edge.in_flight import BytesInFlight
from gateway.edge.json.names import NodeNamesCache
from gateway.edge.json.nodes import GivenNodesCache
from gateway.edge.json.requests import PodCache, RequestCaches
from gateway.edge.messages import empty_response
from gateway.edge.metrics import EdgeMetrics, Verb
from gateway.edge.routes import Routes
from gateway.edge.verbs import (
    BindHandler,
    Context,
    FilterHandler,
    PreemptHandler,
    PrioritizeHandler,
)
from gateway.settings.edge import EdgeSettings
from moorage_host.http.callers import Callers, caller_of
from moorage_host.http.refusals import Refusals
from moorage_host.http.requests import RequestChecks

log = structlog.get_logger()

_LOGGED_PATH = 200  # characters


class App:
    """Answers requests; `gateway.edge.server` listens for it.

    Attributes:
        settings: Limits of the connections.
        refusals: What the port refuses.
        draining: Whether each connection is to end after its next response.
        calls: Those that are being answered.
        finish: Waits for the binds whose callers are gone; call it when nothing else is answered.
    """

    def __init__(
        self,
        routes: Routes,
        bind: BindHandler,
        settings: EdgeSettings,
        metrics: EdgeMetrics,
        last_calls: LastCalls,
    ) -> None:
        self.settings = settings
        self.refusals = Refusals("extender")
        self.draining = False
        self.calls = Calls()
        self.finish = bind.finish
        self._routes = routes
        self._callers = Callers(settings.scheduler_identity, "--scheduler-identity", self.refusals)
        self._checks = RequestChecks(settings.allowed_host, self.refusals, json_only=True)
        self._metrics = metrics
        self._last_calls = last_calls

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, or refuse it with 400, 403, 404, 405, 415, 417 or 421."""
        refusal = self._checks.refusal(request)
        if refusal is None and (refusal := self._callers.refusal(request)) is not None:
            self._last_calls.refused(caller_of(request))
        if refusal is not None:
            return refusal.response()
        route = self._routes.find(request.path)
        if route is None:
            return self._unknown_path(request.path)
        if request.method != hdrs.METH_POST:
            return self._wrong_method(route.verb, request.method)
        if hdrs.EXPECT in request.headers and not await _continue(request):
            return empty_response(web.HTTPExpectationFailed.status_code)
        caller = caller_of(request)
        self._last_calls.accepted(caller, route.verb)
        with self.calls.call():
            response = await route.exchange.respond(request, route.plugin, caller)
        if self.draining or not request.content.at_eof():
            response.force_close()
        return response

    def _unknown_path(self, path: str) -> web.Response:
        self._metrics.bad_request("none", "unknown_path")
        known = self._routes.known()
        log.warning("a call was to an unknown path", path=path[:_LOGGED_PATH], known=known)
        return empty_response(web.HTTPNotFound.status_code)

    def _wrong_method(self, verb: Verb, method: str) -> web.Response:
        self._metrics.bad_request(verb, "method")
        log.warning("a call was not a POST", verb=verb, method=method)
        return empty_response(web.HTTPMethodNotAllowed.status_code, Allow=hdrs.METH_POST)


def make_app(
    cycles: Cycles,
    settings: EdgeSettings,
    registry: CollectorRegistry,
    last_calls: LastCalls | None = None,
) -> App:
    """Return what answers kube-scheduler's calls through `cycles`, and notes them in *last_calls*.

    Raises:
        ConfigurationError: An alias is wrong, or its path is that of a verb.
    """
    metrics = EdgeMetrics(registry)
    metrics.http_timeout.set(settings.http_timeout)
    nodes = GivenNodesCache(settings.given_nodes_cached)
    caches = RequestCaches(names=NodeNamesCache(), nodes=nodes, pods=PodCache(settings.pod_limit))
    context = Context(cycles=cycles, settings=settings, metrics=metrics, caches=caches)
    bind = BindHandler(context)
    handlers = (FilterHandler(context), PrioritizeHandler(context), PreemptHandler(context), bind)
    in_flight = BytesInFlight(settings.body_bytes_in_flight)
    exchanges = {
        handler.verb: Exchange(handler, settings, metrics, in_flight) for handler in handlers
    }
    prefix = settings.extender_prefix
    routes = Routes(exchanges, prefix, read_aliases(settings.extender_alias, prefix))
    return App(routes, bind, settings, metrics, last_calls or LastCalls())


async def _continue(request: web.BaseRequest) -> bool:
    """Ask the caller for the body, if that is what it waits for."""
    if request.headers[hdrs.EXPECT].lower() != "100-continue":
        return False
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return True
