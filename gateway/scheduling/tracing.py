"""Spans of cycles and binds, for those that are sampled; without tracing nothing of it is there.

The trace of a bind is linked to that of the cycle: hours may lie between them, with Permit plugins
or retries.
"""

import random
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, StatusCode, Tracer, get_current_span
from opentelemetry.util.types import AttributeValue

from gateway.cycle import BindCall, Cycle, Cycles, NodeSet
from gateway.cycle.answers import AnswerT
from gateway.cycle.decision import Decision, FilterRecord, ScoreRecord
from gateway.decisions.log import DecisionLog
from moorage_host.tracing.spans import sampled, span, traceparent

Asked = Coroutine[Any, Any, AnswerT]

OPEN_LIMIT = 256
"""Traced cycles that have not ended; of pods of other profiles nothing ends."""


class Traces:
    """Traces a share of the cycles; is called at their end."""

    def __init__(self, tracer: Tracer, ratio: float) -> None:
        """Record spans with *tracer*, of this share of the cycles and of their binds."""
        self.tracer = tracer
        self._ratio = ratio
        self._open: OrderedDict[str, Span] = OrderedDict()

    def begin(self, name: str) -> str:
        """Return the context of a cycle that is traced, "" if it is not."""
        if random.random() >= self._ratio:
            return ""
        begun = self.tracer.start_span(name, Context())
        traced = traceparent(begun)
        self._open[traced] = begun
        if len(self._open) > OPEN_LIMIT:
            self._open.popitem(last=False)
        return traced

    def on_cycle_end(self, cycle: Cycle) -> None:
        """End the span of a cycle that has ended."""
        decision = cycle.decision
        if (begun := self._open.pop(decision.traceparent, None)) is None:
            return
        begun.set_attributes(_about(decision))
        if problem := decision.error or decision.score_error:
            begun.set_status(StatusCode.ERROR, problem)
        begun.end()

    def phase(self, name: str, ask: Callable[..., Asked[AnswerT]]) -> Callable[..., Asked[AnswerT]]:
        """Return *ask*, a `Judge` or `Rank`, with a span in traced cycles; replicas add theirs."""

        async def traced(cycle: Cycle, *nodes: NodeSet) -> AnswerT:
            above = cycle.traceparent
            with span(self.tracer, name, sampled(above)) as made:
                cycle.trace(traceparent())
                try:
                    answer = await ask(cycle, *nodes)
                finally:
                    cycle.trace(above)
                made.set_attributes(_about_phase(answer.record))
                return answer

        return lambda cycle, *nodes: (traced if cycle.traceparent else ask)(cycle, *nodes)


class TracedCycles(Cycles):
    """Answers calls as others do, with spans."""

    def __init__(self, cycles: Cycles, traces: Traces, log: DecisionLog) -> None:
        """Have *cycles* answer; *log* has what binds are linked to."""
        self._cycles = cycles
        self._traces = traces
        self._log = log

    async def filter(self, cycle: Cycle) -> None:
        """Rule nodes out; this begins a scheduling cycle."""
        cycle.trace(self._traces.begin("scheduling cycle"))
        await self._cycles.filter(cycle)

    async def prioritize(self, cycle: Cycle) -> Sequence[int]:
        """Rank nodes; this is a part of the cycle of the pod, if there is one."""
        pod = cycle.pod
        decision = self._log.latest(pod.namespace, pod.name, pod.uid)
        parent = sampled(decision.traceparent) if decision else None
        if parent is not None:
            with span(self._traces.tracer, "prioritize", parent):
                cycle.trace(traceparent())
                return await self._cycles.prioritize(cycle)
        if decision is None:
            cycle.trace(self._traces.begin("scheduling cycle"))
        return await self._cycles.prioritize(cycle)

    async def preempt(self, cycle: Cycle) -> None:
        """Drop the candidates on which the pod could not run even without the victims."""
        cycle.trace(self._traces.begin("preemption"))
        await self._cycles.preempt(cycle)

    async def bind(self, call: BindCall) -> None:
        """Bind the pod, in a trace of its own if its cycle was traced."""
        decision = self._log.latest(call.namespace, call.name, call.uid)
        cause = sampled(decision.traceparent) if decision else None
        if cause is None:
            return await self._cycles.bind(call)
        links = (Link(get_current_span(cause).get_span_context()),)
        about = {**_pod(call.namespace, call.name, call.uid), "k8s.node.name": call.node}
        tracer = self._traces.tracer
        with span(tracer, "binding cycle", Context(), links=links, attributes=about):
            traced = msgspec.structs.replace(call, traceparent=traceparent())
            return await self._cycles.bind(traced)


def _pod(namespace: str, name: str, uid: str) -> dict[str, AttributeValue]:
    return {"k8s.namespace.name": namespace, "k8s.pod.name": name, "k8s.pod.uid": uid}


def _about(decision: Decision) -> dict[str, AttributeValue]:
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


def _about_phase(record: FilterRecord | ScoreRecord) -> dict[str, AttributeValue]:
    about: dict[str, AttributeValue] = {
        "moorage.nodes": record.nodes,
        "moorage.cached_nodes": record.cached_nodes,
        "moorage.shards": record.shards,
    }
    if isinstance(record, FilterRecord):
        about["moorage.feasible"] = record.feasible
    return about
