"""Samples scheduling cycles, and gives those and their binds a trace each.

The trace of a bind is linked to that of the cycle: hours may lie between them, with Permit plugins
or retries.
"""

import random
import time
from collections import OrderedDict
from dataclasses import replace
from typing import Protocol

import msgspec

from gateway.calls import (
    BindCall,
    CycleRequest,
    Cycles,
    FilterOutcome,
    PreemptCall,
    PreemptOutcome,
    PrioritizeOutcome,
)
from gateway.decisions.cycle import SchedulingCycle
from gateway.decisions.records import Decision
from moorage_host.tracing.current import span, traceparent
from moorage_host.tracing.span import Span, SpanContext, SpanSink, Value, parse

OPEN_LIMIT = 256
"""Traced cycles that have not ended; of pods of other profiles nothing ends."""


class Decisions(Protocol):
    """The decisions so far."""

    def latest(self, namespace: str, pod: str, uid: str) -> Decision | None:
        """Return the latest attempt of a pod."""


class TracedCycles(Cycles):
    """Answers calls as others do, with spans; an observer of the cycles too."""

    def __init__(self, sink: SpanSink, ratio: float, decisions: Decisions) -> None:
        """Send spans to *sink*, of this share of the cycles and of their binds."""
        self._sink = sink
        self._ratio = ratio
        self._decisions = decisions
        self._open: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._cycles: Cycles

    def around(self, cycles: Cycles) -> Cycles:
        """Have *cycles* answer the calls."""
        self._cycles = cycles
        return self

    async def filter(self, request: CycleRequest) -> FilterOutcome:
        """Rule nodes out; this begins a scheduling cycle."""
        if traced := self._begin("scheduling cycle"):
            request = msgspec.structs.replace(request, traceparent=traced)
        return await self._cycles.filter(request)

    async def prioritize(self, request: CycleRequest) -> PrioritizeOutcome:
        """Rank nodes; this is a part of the cycle of the pod, if there is one."""
        pod = request.pod
        decision = self._decisions.latest(pod.namespace, pod.name, pod.uid)
        parent = parse(decision.traceparent) if decision else None
        if parent is not None:
            with span(self._sink, parent, "prioritize"):
                request = msgspec.structs.replace(request, traceparent=traceparent())
                return await self._cycles.prioritize(request)
        if decision is None and (traced := self._begin("scheduling cycle")):
            request = msgspec.structs.replace(request, traceparent=traced)
        return await self._cycles.prioritize(request)

    async def preempt(self, call: PreemptCall) -> PreemptOutcome:
        """Drop the candidates on which the pod could not run even without the victims."""
        if traced := self._begin("preemption"):
            call = replace(call, traceparent=traced)
        return await self._cycles.preempt(call)

    async def bind(self, call: BindCall) -> None:
        """Bind the pod, in a trace of its own if its cycle was traced."""
        decision = self._decisions.latest(call.namespace, call.name, call.uid)
        link = parse(decision.traceparent) if decision else None
        if link is None:
            return await self._cycles.bind(call)
        about = {**_pod(call.namespace, call.name, call.uid), "k8s.node.name": call.node}
        with span(self._sink, None, "binding cycle", link=link, attributes=about):
            return await self._cycles.bind(replace(call, traceparent=traceparent()))

    def ended(self, cycle: SchedulingCycle) -> None:
        """Send the span of a cycle that has ended."""
        begun = self._open.pop(cycle.request.traceparent, None)
        context = parse(cycle.request.traceparent)
        if begun is None or context is None:
            return
        (name, start), decision = begun, cycle.decision
        self._sink.add(
            Span(
                name=name,
                context=context,
                start=start,
                end=time.time_ns(),
                attributes=_about(decision),
                error=decision.error or decision.score_error,
            )
        )

    def bound(self, decision: Decision) -> None:
        """Do nothing: the span of the bind is `bind`'s."""

    def _begin(self, name: str) -> str:
        """Return the context of a cycle that is traced, "" if it is not."""
        if random.random() >= self._ratio:
            return ""
        traced = SpanContext.root().traceparent
        self._open[traced] = name, time.time_ns()
        if len(self._open) > OPEN_LIMIT:
            self._open.popitem(last=False)
        return traced


def _pod(namespace: str, name: str, uid: str) -> dict[str, Value]:
    return {"k8s.namespace.name": namespace, "k8s.pod.name": name, "k8s.pod.uid": uid}


def _about(decision: Decision) -> dict[str, Value]:
    about = _pod(decision.namespace, decision.pod, decision.uid)
    about["moorage.profile"] = decision.profile
    about["moorage.generation"] = decision.generation
    about["moorage.policy_revision"] = decision.policy_revision
    about["moorage.queue_seconds"] = decision.queue_seconds
    if (filtered := decision.filter or decision.preempt) is not None:
        about["moorage.nodes"] = filtered.nodes
        about["moorage.feasible"] = filtered.feasible
    if decision.score is not None and decision.score.top:
        about["moorage.best_node"] = decision.score.top[0].node
    return about
