"""The four verbs: how each reads its call, asks for the outcome, and words failures.

The words matter, for users read them (or cannot): filter and bind have an error field, prioritize
has nothing but an empty list, preempt nothing but a status. `gateway.edge.exchange` runs them.
"""

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import structlog
from aiohttp import web

from gateway.calls import BindCall, Cycles, NodeSet, PreemptCall, PrioritizeOutcome
from gateway.edge.json import answers, requests
from gateway.edge.messages import JsonResponse, empty_response
from gateway.edge.metrics import EdgeMetrics, Verb
from gateway.settings.edge import EdgeSettings

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What all verbs share."""

    cycles: Cycles
    settings: EdgeSettings
    metrics: EdgeMetrics
    caches: requests.RequestCaches


class VerbHandler(ABC):
    """One verb; `limit` is the largest body, in bytes."""

    verb: ClassVar[Verb]
    limit: int

    @abstractmethod
    async def serve(self, body: bytes, plugin: str, deadline: float, caller: str) -> bytes:
        """Return the answer's JSON; raises BadRequestError, CallFailedError, anything."""

    @abstractmethod
    def failed(self, message: str) -> web.StreamResponse:
        """Word a failure."""

    def bad(self, message: str) -> web.StreamResponse:
        """Word a request that was not understood."""
        return self.failed(message)


class FilterHandler(VerbHandler):
    """Rules nodes out."""

    verb = "filter"

    def __init__(self, context: Context) -> None:
        self._context = context
        self.limit = context.settings.scheduling_body_limit

    async def serve(self, body: bytes, plugin: str, deadline: float, caller: str) -> bytes:
        """Return an ExtenderFilterResult."""
        request = await requests.read_scheduling(
            body, self._context.caches, plugin, deadline, caller
        )
        outcome = await self._context.cycles.filter(request)
        feasible = outcome.feasible
        self._context.metrics.nodes(self.verb, len(request.nodes), len(feasible))
        if feasible.given is None:
            self._context.caches.names.keep(feasible)
        if outcome.scores is not None:
            write = partial(_write_ahead, feasible, self._context.settings.omit_zero_scores)
            outcome.scores.add_done_callback(write)
        return answers.filter_answer(outcome)

    def failed(self, message: str) -> web.StreamResponse:
        """Put it where kube-scheduler shows it to users."""
        return JsonResponse(answers.filter_error(message))


class PrioritizeHandler(VerbHandler):
    """Ranks nodes."""

    verb = "prioritize"

    def __init__(self, context: Context) -> None:
        self._context = context
        self.limit = context.settings.scheduling_body_limit

    async def serve(self, body: bytes, plugin: str, deadline: float, caller: str) -> bytes:
        """Return a HostPriorityList."""
        request = await requests.read_scheduling(
            body, self._context.caches, plugin, deadline, caller
        )
        outcome = await self._context.cycles.prioritize(request)
        self._context.metrics.nodes(self.verb, len(request.nodes), len(outcome.scores))
        if outcome.encoded:
            return outcome.encoded
        omit_zeros = self._context.settings.omit_zero_scores
        return answers.prioritize_answer(request.nodes, outcome.scores, omit_zeros=omit_zeros)

    def failed(self, message: str) -> web.StreamResponse:
        """Have no opinion: an error would have the same effect, and cost the connection."""
        del message
        return JsonResponse(answers.NO_OPINION)


class PreemptHandler(VerbHandler):
    """Drops candidates for preemption."""

    verb = "preempt"

    def __init__(self, context: Context) -> None:
        self._context = context
        self.limit = context.settings.preempt_body_limit

    async def serve(self, body: bytes, plugin: str, deadline: float, caller: str) -> bytes:
        """Return an ExtenderPreemptionResult."""
        del plugin
        pod, pod_json, victims = await requests.read_preempt(body, self._context.caches)
        call = PreemptCall(
            pod=pod, pod_json=pod_json, victims=victims, deadline=deadline, caller=caller
        )
        outcome = await self._context.cycles.preempt(call)
        self._context.metrics.nodes(self.verb, len(victims), len(outcome.victims))
        return answers.preempt_answer(outcome)

    def failed(self, message: str) -> web.StreamResponse:
        """Give up; the protocol has no field for the message."""
        del message
        return empty_response(web.HTTPServiceUnavailable.status_code)

    def bad(self, message: str) -> web.StreamResponse:
        """Refuse."""
        del message
        return empty_response(web.HTTPBadRequest.status_code)


class BindHandler(VerbHandler):
    """Binds pods. A bind that has begun is never cancelled: its outcome would be unknown."""

    verb = "bind"

    def __init__(self, context: Context) -> None:
        self._cycles = context.cycles
        self._running: set[asyncio.Task[Exception | None]] = set()
        self.limit = context.settings.bind_body_limit

    async def serve(self, body: bytes, plugin: str, deadline: float, caller: str) -> bytes:
        """Return an ExtenderBindingResult."""
        del plugin, caller
        args = requests.read_binding(body)
        call = BindCall(
            namespace=args.PodNamespace,
            name=args.PodName,
            uid=args.PodUID,
            node=args.Node,
            deadline=deadline,
        )
        await self._bind(call)
        return answers.bind_answer("")

    def failed(self, message: str) -> web.StreamResponse:
        """Put it where kube-scheduler shows it to users."""
        return JsonResponse(answers.bind_answer(message))

    async def finish(self, timeout: float) -> None:
        """Wait for the binds whose callers are gone, at most so many seconds."""
        if self._running:
            await asyncio.wait(self._running, timeout=timeout)

    async def _bind(self, call: BindCall) -> None:
        task = asyncio.create_task(self._outcome(call))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            failure = await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_late_bind)
            raise
        if failure is not None:
            raise failure

    async def _outcome(self, call: BindCall) -> Exception | None:
        try:
            await self._cycles.bind(call)
        except Exception as failure:  # noqa: BLE001 - raised again, or logged, by who waits for it
            return failure
        return None


def _write_ahead(
    feasible: NodeSet, omit_zeros: bool, scores: "asyncio.Future[PrioritizeOutcome]"
) -> None:
    """Write the answer to the prioritize call while kube-scheduler scores nodes itself."""
    if scores.cancelled() or scores.exception():
        return
    outcome = scores.result()
    with suppress(ValueError):  # reported when the answer is asked for
        outcome.encoded = answers.prioritize_answer(feasible, outcome.scores, omit_zeros=omit_zeros)


def _log_late_bind(task: asyncio.Task[Exception | None]) -> None:
    outcome = "cancelled" if task.cancelled() else str(task.result() or "bound")
    log.warning("a bind ended after its caller was gone", outcome=outcome)
