"""One call of a verb and its response: body, deadline, failures and metrics."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from aiohttp import web

from gateway.calls import CallFailedError, StandsByError
from gateway.calls.outcomes import ANSWER_SECONDS
from gateway.edge.in_flight import BytesInFlight
from gateway.edge.json.errors import TOO_LARGE, BadRequestError
from gateway.edge.messages import JsonResponse, empty_response, read_body
from gateway.edge.metrics import EdgeMetrics, Result
from gateway.edge.verbs import VerbHandler
from gateway.settings.edge import EdgeSettings

log = structlog.get_logger()

# Users read these in events, and kube-scheduler retries at once when an event's text changes.
TOO_SLOW = "moorage: the gateway did not decide in time"
INTERNAL = "moorage: internal error in the gateway, see its log"
NOT_UNDERSTOOD = "moorage: the request was not understood: "


class Exchange:
    """Answers the calls of one verb."""

    def __init__(
        self,
        handler: VerbHandler,
        settings: EdgeSettings,
        metrics: EdgeMetrics,
        in_flight: BytesInFlight,
    ) -> None:
        """Have *handler* answer; the bodies of all exchanges count as *in_flight*."""
        self._handler = handler
        self._metrics = metrics
        self._in_flight = in_flight
        self._budget = settings.http_timeout * (1 - settings.http_timeout_margin)

    async def respond(
        self, request: web.BaseRequest, plugin: str, caller: str = ""
    ) -> web.StreamResponse:
        """Answer a call; cancelled only when the caller hangs up or the gateway stops.

        Args:
            request: The call. Its headers have arrived, its body may still be on the way.
            plugin: Who answers alone; "" is every plugin.
            caller: Who calls, for the decision.
        """
        loop = asyncio.get_running_loop()
        arrival = loop.time()
        result: Result = "cancelled"
        try:
            result, response = await self._outcome(request, plugin, arrival + self._budget, caller)
        finally:
            self._metrics.answered(self._handler.verb, result, loop.time() - arrival)
        return response

    async def _outcome(
        self, request: web.BaseRequest, plugin: str, deadline: float, caller: str
    ) -> tuple[Result, web.StreamResponse]:
        handler = self._handler
        body: bytes | None = None
        try:
            with self._in_flight.body() as counted:
                async with _until(deadline):
                    body = await read_body(request, handler.limit, counted)
                    answer = await handler.serve(body, plugin, deadline, caller)
                    return "ok", JsonResponse(answer)
        except BadRequestError as error:
            return "bad_request", self._bad(error)
        except CallFailedError as error:
            log.warning("a call failed", verb=handler.verb, problem=str(error))
            response = handler.failed(str(error))
            if isinstance(error, StandsByError):
                response.force_close()
            return "failed", response
        except TimeoutError:
            if body is None:
                slow = BadRequestError("its body did not arrive in time", reason="slow_body")
                return "bad_request", self._bad(slow)
            log.warning("a call was not answered in time", verb=handler.verb)
            return "timeout", handler.failed(TOO_SLOW)
        except Exception:
            log.exception("a call failed for an unexpected reason", verb=handler.verb)
            return "internal", handler.failed(INTERNAL)

    def _bad(self, error: BadRequestError) -> web.StreamResponse:
        verb = self._handler.verb
        self._metrics.bad_request(verb, error.reason)
        log.warning("a call was not understood", verb=verb, problem=str(error))
        if error.reason == TOO_LARGE:
            return empty_response(web.HTTPRequestEntityTooLarge.status_code)
        return self._handler.bad(f"{NOT_UNDERSTOOD}{error}")


@asynccontextmanager
async def _until(deadline: float) -> AsyncIterator[None]:
    """Time out at *deadline*, but never before the call could fail by itself, with a cause.

    It does ANSWER_SECONDS earlier. A loop that is busy may find both times over at once; so those
    seconds begin when it finds the first.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        found = loop.call_at(
            deadline - ANSWER_SECONDS, lambda: limit.reschedule(loop.time() + ANSWER_SECONDS)
        )
        try:
            yield
        finally:
            found.cancel()
