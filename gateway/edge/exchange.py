"""One call and its reply: deadline, failures, metrics; whoever read the call from the wire."""

import asyncio
from collections.abc import Awaitable

import structlog

from gateway.calls import CallFailedError
from gateway.edge.json.errors import TOO_LARGE, BadRequestError
from gateway.edge.metrics import EdgeMetrics, Result
from gateway.edge.reply import Reply
from gateway.edge.settings import EdgeSettings
from gateway.edge.verbs import VerbHandler

log = structlog.get_logger()

# Users read these in events, and kube-scheduler retries at once when an event's text changes.
TOO_SLOW = "moorage: the gateway did not decide in time"
INTERNAL = "moorage: internal error in the gateway, see its log"
NOT_UNDERSTOOD = "moorage: the request was not understood: "


class Exchange:
    """Answers the calls of one verb.

    Attributes:
        limit: The largest body, in bytes.
    """

    def __init__(self, handler: VerbHandler, settings: EdgeSettings, metrics: EdgeMetrics) -> None:
        self.limit = handler.limit
        self._handler = handler
        self._metrics = metrics
        self._budget = settings.http_timeout * (1 - settings.http_timeout_margin)

    async def answer(self, body: bytes | Awaitable[bytes], plugin: str, arrival: float) -> Reply:
        """Answer, whatever happens; cancelled only when the caller hangs up.

        Args:
            body: The call, or what reads it and may raise BadRequestError.
            plugin: Who answers alone; "" is every plugin.
            arrival: When the call began to come, in the loop's time.
        """
        result: Result = "cancelled"
        try:
            result, reply = await self._reply(body, plugin, arrival + self._budget)
        finally:
            now = asyncio.get_running_loop().time()
            self._metrics.answered(self._handler.verb, result, now - arrival)
        return reply

    def hung_up(self, seconds: float) -> None:
        """Count a caller that was gone after *seconds*, before its body had come."""
        self._metrics.answered(self._handler.verb, "cancelled", seconds)

    async def _reply(
        self, body: bytes | Awaitable[bytes], plugin: str, deadline: float
    ) -> tuple[Result, Reply]:
        handler, is_there = self._handler, isinstance(body, bytes)
        try:
            async with asyncio.timeout_at(deadline):
                if not isinstance(body, bytes):
                    body, is_there = await body, True
                return "ok", Reply(await handler.serve(body, plugin, deadline))
        except BadRequestError as error:
            return "bad_request", self._bad(error)
        except CallFailedError as error:
            log.warning("a call failed", verb=handler.verb, problem=str(error))
            return "failed", handler.failed(str(error))
        except TimeoutError:
            if not is_there:
                slow = BadRequestError("its body did not arrive in time", reason="slow_body")
                return "bad_request", self._bad(slow)
            log.warning("a call was not answered in time", verb=handler.verb)
            return "timeout", handler.failed(TOO_SLOW)
        except Exception:
            log.exception("a call failed for an unexpected reason", verb=handler.verb)
            return "internal", handler.failed(INTERNAL)

    def _bad(self, error: BadRequestError) -> Reply:
        verb = self._handler.verb
        self._metrics.bad_request(verb, error.reason)
        log.warning("a call was not understood", verb=verb, problem=str(error))
        if error.reason == TOO_LARGE:
            return Reply(status=413)
        return self._handler.bad(f"{NOT_UNDERSTOOD}{error}")
