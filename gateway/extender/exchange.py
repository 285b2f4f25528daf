"""One request and its answer: deadline, failures, metrics. `gateway.extender.app` routes here."""

import asyncio

import structlog
from aiohttp import web

from gateway.calls import CallFailedError
from gateway.extender.bodies import BodyTooLargeError, answer, read_body, refusal
from gateway.extender.metrics import EdgeMetrics, Result
from gateway.extender.settings import EdgeSettings
from gateway.extender.verbs import VerbHandler
from gateway.wire.errors import BadRequestError

log = structlog.get_logger()

# Users read these in events, and kube-scheduler retries at once when an event's text changes.
TOO_SLOW = "moorage: the gateway did not decide in time"
INTERNAL = "moorage: internal error in the gateway, see its log"
NOT_UNDERSTOOD = "moorage: the request was not understood: "


class Connections:
    """Whether connections may stay open after an answer; shared by all exchanges of an edge."""

    def __init__(self) -> None:
        self.draining = False


class Exchange:
    """Answers the requests of one verb."""

    def __init__(
        self,
        handler: VerbHandler,
        settings: EdgeSettings,
        metrics: EdgeMetrics,
        connections: Connections,
    ) -> None:
        self._handler = handler
        self._metrics = metrics
        self._connections = connections
        self._budget = settings.http_timeout * (1 - settings.http_timeout_margin)

    async def handle(self, request: web.BaseRequest, plugin: str) -> web.StreamResponse:
        """Answer, whatever happens; cancelled only when the caller hangs up.

        Args:
            request: What kube-scheduler asks.
            plugin: Who answers alone; "" is every plugin.
        """
        now = asyncio.get_running_loop().time
        arrival = now()
        result: Result = "cancelled"
        try:
            result, response = await self._respond(request, plugin, arrival + self._budget)
        finally:
            self._metrics.answered(self._handler.verb, result, now() - arrival)
        if self._connections.draining or not request.content.at_eof():
            response.force_close()
        return response

    async def _respond(
        self, request: web.BaseRequest, plugin: str, deadline: float
    ) -> tuple[Result, web.StreamResponse]:
        handler, body = self._handler, None
        try:
            async with asyncio.timeout_at(deadline):
                body = await read_body(request, handler.limit)
                return "ok", answer(await handler.serve(body, plugin, deadline))
        except BadRequestError as error:
            return "bad_request", self._bad(error)
        except CallFailedError as error:
            log.warning("a call failed", verb=handler.verb, problem=str(error))
            return "failed", handler.failed(str(error))
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
        if isinstance(error, BodyTooLargeError):
            return refusal(413)
        return self._handler.bad(f"{NOT_UNDERSTOOD}{error}")
