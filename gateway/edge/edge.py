"""Answers kube-scheduler's calls: what a call goes through, from request to response.

    handle      refuses what no kube-scheduler sends, and finds the verb that the path names
    _respond    bounds body and time; each failure becomes a response with words, and is counted
    _filter, _prioritize, _preempt, _bind
                read the body, have `gateway.cycle.Cycles` decide, and write the answer

The words of failures matter, for users read them (or cannot): filter and bind have an error field,
prioritize has nothing but an empty list, preempt nothing but a status.
"""

import asyncio
import math

import structlog
from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry

from gateway.cycle import (
    ANSWER_SECONDS,
    BindCall,
    CallFailedError,
    Cycle,
    Cycles,
    NodeSet,
    StandsByError,
)
from gateway.edge import answers
from gateway.edge.answers import PROBLEM, JsonResponse, empty_response, in_header
from gateway.edge.bodies import TOO_LARGE, BadRequestError, Bodies
from gateway.edge.metrics import EdgeMetrics, LastCalls, Result, Verb
from gateway.edge.paths import Paths, Route
from gateway.edge.requests import RequestReader, read_binding
from gateway.edge.schedulers import Schedulers
from gateway.settings import EdgeSettings
from moorage.units.printable import printable
from moorage_host.http.callers import Callers
from moorage_host.http.connections import State, connection_of
from moorage_host.http.requests import Refusals, RequestChecks

log = structlog.get_logger()

# Users read these in events, and kube-scheduler retries at once when an event's text changes.
TOO_SLOW = "moorage: the gateway did not decide in time"
INTERNAL = "moorage: internal error in the gateway, see its log"
NOT_UNDERSTOOD = "moorage: the request was not understood: "

Profiles = frozenset[str] | None
"""The schedulerNames whose pods a caller may place; None for all."""

BUDGET_SHARE = 0.8
"""The part of --http-timeout in which a call is answered; the rest is for kube-scheduler's way."""

_LOGGED_PATH = 200  # characters
_POLL_SECONDS = 0.05


class Edge:
    """Answers requests; `gateway.edge.server` listens for it.

    Attributes:
        settings: Limits of the connections.
        refusals: What the port refuses.
        draining: Whether each connection is to end after its next response.
    """

    def __init__(
        self,
        cycles: Cycles,
        settings: EdgeSettings,
        registry: CollectorRegistry,
        last_calls: LastCalls | None = None,
    ) -> None:
        """Have *cycles* decide; note callers in *last_calls*.

        Raises:
            ConfigurationError: An alias is wrong, or its path is that of a verb; an identity is
                wrong.
        """
        self.settings = settings
        self.refusals = Refusals("extender")
        self.draining = False
        self._cycles = cycles
        self._paths = Paths(settings.extender_prefix, settings.extender_alias)
        self._checks = RequestChecks(settings.allowed_host, self.refusals, json_only=True)
        self._schedulers = schedulers = Schedulers(settings.scheduler_identity)
        self._callers = Callers(schedulers.names, "--scheduler-identity", self.refusals)
        self._bodies = Bodies(settings.body_bytes_in_flight)
        self._reader = RequestReader(settings.given_nodes_cached)
        self._metrics = EdgeMetrics(registry, settings.http_timeout)
        self._budget = settings.http_timeout * BUDGET_SHARE
        self._last_calls = last_calls or LastCalls()
        self._in_progress = 0
        self._last = -math.inf  # when a call came last
        self._binds: set[asyncio.Task[None]] = set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request, or refuse it with 400, 403, 404, 405, 415, 417 or 421."""
        connection = connection_of(request)
        if connection is None:  # it is closed already
            return empty_response(web.HTTPBadRequest.status_code)
        connection.state = State.BUSY
        try:
            if (refusal := self._checks.refusal(request)) is not None:
                return refusal.response()
            caller = connection.caller
            if connection.identities is not None and (refusal := self._callers.refusal(request)):
                self._last_calls.note(caller, "", connection.certificate)
                return refusal.response()
            path = request.path
            route = self._paths.routes.get(path) or self._paths.find(path)
            if route is None:
                return self._unknown_path(path)
            if request.method != hdrs.METH_POST:
                return self._wrong_method(route.verb, request.method)
            if hdrs.EXPECT in request.headers and not await _continue(request):
                return empty_response(web.HTTPExpectationFailed.status_code)
            self._last_calls.note(caller, route.verb, connection.certificate)
            profiles = None
            if self._schedulers.are_limited:
                profiles = self._schedulers.profiles_of(connection.identities)
            response = await self.respond(request, route, caller, profiles)
            if self.draining or not request.content.at_eof():
                response.force_close()
            return response
        finally:
            connection.become(State.IDLE)

    async def respond(
        self,
        request: web.BaseRequest,
        route: Route,
        caller: str = "",
        profiles: Profiles = None,
    ) -> web.StreamResponse:
        """Answer a call; cancelled only when the caller hangs up or the gateway stops.

        Args:
            request: The call. Its headers have arrived, its body may still be on the way.
            route: Which verb and plugin answer.
            caller: Who calls, for the decision.
            profiles: The schedulerNames whose pods the caller may place; None for all.
        """
        verb, plugin = route
        loop = asyncio.get_running_loop()
        arrival = self._last = loop.time()
        deadline = arrival + self._budget
        self._in_progress += 1
        body: bytes | None = None
        result: Result = "cancelled"
        try:
            async with asyncio.timeout(None) as limit:
                # The call fails by itself ANSWER_SECONDS before its deadline, with a cause. A loop
                # that is busy may find both times over at once: these begin when it finds that one.
                grace = loop.call_at(
                    deadline - ANSWER_SECONDS,
                    lambda: limit.reschedule(loop.time() + ANSWER_SECONDS),
                )
                try:
                    body = await self._bodies.read(request, self.settings.body_limit)
                    match verb:
                        case "filter":
                            answer = await self._filter(body, plugin, deadline, caller, profiles)
                        case "prioritize":
                            answer = await self._prioritize(
                                body, plugin, deadline, caller, profiles
                            )
                        case "preempt":
                            answer = await self._preempt(body, deadline, caller, profiles)
                        case "bind":
                            answer = await self._bind(body, deadline, profiles)
                finally:
                    grace.cancel()
            result = "ok"
            return JsonResponse(answer)
        except BadRequestError as error:
            result = "bad_request"
            return self._not_understood(verb, error)
        except CallFailedError as error:
            result = "failed"
            log.warning("a call failed", verb=verb, problem=str(error))
            response = failed(verb, str(error))
            if isinstance(error, StandsByError):
                response.force_close()
            return response
        except TimeoutError:
            if body is None:
                result = "bad_request"
                slow = BadRequestError("its body did not arrive in time", reason="slow_body")
                return self._not_understood(verb, slow)
            result = "timeout"
            log.warning("a call was not answered in time", verb=verb)
            return failed(verb, TOO_SLOW)
        except Exception:
            result = "internal"
            log.exception("a call failed for an unexpected reason", verb=verb)
            return failed(verb, INTERNAL)
        finally:
            self._in_progress -= 1
            self._bodies.held -= len(body or b"")
            self._metrics.requests[verb, result].inc()
            self._metrics.seconds[verb, result](loop.time() - arrival)
            if verb == "prioritize" and result != "ok":
                self._metrics.hidden[result].inc()

    async def _filter(
        self, body: bytes, plugin: str, deadline: float, caller: str, profiles: Profiles
    ) -> bytes:
        cycle = await self._reader.scheduling(
            body, plugin=plugin, deadline=deadline, caller=caller, profiles=profiles
        )
        await self._cycles.filter(cycle)
        nodes, feasible = cycle.nodes, cycle.feasible
        came, left = self._metrics.nodes["filter"]
        came(len(nodes.names))
        left(len(feasible.names))
        if cycle.verdicts is None or feasible is nodes:
            return answers.filter_answer(feasible)
        if feasible.given is None:
            self._reader.keep(feasible)
        return answers.filter_answer(feasible, *cycle.verdicts.rejected(nodes))

    async def _prioritize(
        self, body: bytes, plugin: str, deadline: float, caller: str, profiles: Profiles
    ) -> bytes:
        cycle = await self._reader.scheduling(
            body, plugin=plugin, deadline=deadline, caller=caller, profiles=profiles
        )
        scores = await self._cycles.prioritize(cycle)
        came, left = self._metrics.nodes["prioritize"]
        came(len(cycle.nodes.names))
        left(len(scores))
        return answers.prioritize_answer(cycle.nodes, scores)

    async def _preempt(
        self, body: bytes, deadline: float, caller: str, profiles: Profiles
    ) -> bytes:
        pod, pod_json, victims = await self._reader.preempt(body)
        cycle = Cycle(
            pod=pod,
            pod_json=pod_json,
            nodes=NodeSet(list(victims)),
            excluded_pods=[each.UID for given in victims.values() for each in given.Pods or ()],
            deadline=deadline,
            caller=caller,
            profiles=profiles,
        )
        await self._cycles.preempt(cycle)
        left_over = {name: victims[name] for name in cycle.feasible.names}
        came, left = self._metrics.nodes["preempt"]
        came(len(victims))
        left(len(left_over))
        return answers.preempt_answer(left_over)

    async def _bind(self, body: bytes, deadline: float, profiles: Profiles) -> bytes:
        args = read_binding(body)
        call = BindCall(
            namespace=args.PodNamespace,
            name=args.PodName,
            uid=args.PodUID,
            node=args.Node,
            deadline=deadline,
            profiles=profiles,
        )
        # A bind that has begun is never cancelled: its outcome would be unknown.
        bind = asyncio.create_task(self._cycles.bind(call))
        self._binds.add(bind)
        bind.add_done_callback(self._binds.discard)
        try:
            await asyncio.shield(bind)
        except asyncio.CancelledError:
            if not bind.done():
                bind.add_done_callback(_log_late_bind)
            raise
        return answers.bind_answer("")

    async def until_calls_stop(self, quiet: float, longest: float) -> None:
        """Wait until, after some, no call has come for *quiet* seconds; or *longest* seconds.

        Without any call nobody knows whether the next one goes elsewhere: then it takes *longest*.
        """
        loop = asyncio.get_running_loop()
        start = loop.time()
        while loop.time() < start + longest:
            if self._last >= start and loop.time() - self._last >= quiet:
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def until_answered(self, longest: float) -> None:
        """Wait until no call is being answered, at most *longest* seconds."""
        loop = asyncio.get_running_loop()
        end = loop.time() + longest
        while self._in_progress and loop.time() < end:  # noqa: ASYNC110 - rare and short
            await asyncio.sleep(_POLL_SECONDS)

    async def until_bound(self, longest: float) -> None:
        """Wait for the binds whose callers are gone, at most *longest* seconds."""
        if self._binds:
            await asyncio.wait(self._binds, timeout=longest)

    def _not_understood(self, verb: Verb, error: BadRequestError) -> web.StreamResponse:
        self._metrics.bad.labels(verb, error.reason).inc()
        log.warning("a call was not understood", verb=verb, problem=str(error))
        if error.reason == TOO_LARGE:
            return empty_response(web.HTTPRequestEntityTooLarge.status_code)
        return failed(verb, f"{NOT_UNDERSTOOD}{error}", web.HTTPBadRequest.status_code)

    def _unknown_path(self, path: str) -> web.Response:
        self._metrics.bad.labels("none", "unknown_path").inc()
        known = list(self._paths.routes)
        log.warning("a call was to an unknown path", path=path[:_LOGGED_PATH], known=known)
        return empty_response(web.HTTPNotFound.status_code)

    def _wrong_method(self, verb: Verb, method: str) -> web.Response:
        self._metrics.bad.labels(verb, "method").inc()
        log.warning("a call was not a POST", verb=verb, method=method)
        return empty_response(web.HTTPMethodNotAllowed.status_code, Allow=hdrs.METH_POST)


def failed(
    verb: Verb, message: str, status: int = web.HTTPServiceUnavailable.status_code
) -> web.StreamResponse:
    """Return the response to a call that failed, with the message where the protocol has a field.

    Prioritize has none, and an error would have the same effect as no scores, and cost the
    connection. Preempt has none either, and answers with *status*. People find it in a header.
    """
    message = printable(message, lines=True)
    match verb:
        case "filter":
            return JsonResponse(answers.filter_error(message))
        case "prioritize":
            return JsonResponse(answers.NO_OPINION, message)
        case "preempt":
            return empty_response(status, **{PROBLEM: in_header(message).decode()})
        case "bind":
            return JsonResponse(answers.bind_answer(message))


async def _continue(request: web.BaseRequest) -> bool:
    """Ask the caller for the body, if that is what it waits for."""
    if request.headers[hdrs.EXPECT].lower() != "100-continue":
        return False
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return True


def _log_late_bind(bind: asyncio.Task[None]) -> None:
    outcome = "cancelled" if bind.cancelled() else str(bind.exception() or "bound")
    log.warning("a bind ended after its caller was gone", outcome=outcome)
