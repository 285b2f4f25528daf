"""Spans of cycles and binds, for those that are sampled; without tracing nothing of it is there.

The trace of a bind is linked to that of the cycle: hours may lie between them, with Permit plugins
or retries.
"""

import random
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import msgspec

from gateway.cycle import BindCall, Cycle, Cycles, Judge, NodeSet, Rank
from gateway.cycle.decision import Decision, FilterRecord, ScoreRecord
from gateway.cycle.scores import Scores
from gateway.cycle.verdicts import Verdicts
from gateway.decisions.log import DecisionLog
from moorage_host.tracing.span import Span, SpanContext, SpanSink, Value, parse, span, traceparent

OPEN_LIMIT = 256
"""Traced cycles that have not ended; of pods of other profiles nothing ends."""


class Tracer:
    """Sends the spans of cycles that are sampled; is called at their end."""

    def __init__(self, sink: SpanSink, ratio: float) -> None:
        """Send spans to *sink*, of this share of the cycles and of their binds."""
        self.sink = sink
        self._ratio = ratio
        self._open: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def begin(self, name: str) -> str:
        """Return the context of a cycle that is traced, "" if it is not."""
        if random.random() >= self._ratio:
            return ""
        traced = SpanContext.root().traceparent
        self._open[traced] = name, time.time_ns()
        if len(self._open) > OPEN_LIMIT:
            self._open.popitem(last=False)
        return traced

    def ended(self, cycle: Cycle) -> None:
        """Send the span of a cycle that has ended."""
        decision = cycle.decision
        begun = self._open.pop(decision.traceparent, None)
        context = parse(decision.traceparent)
        if begun is None or context is None:
            return
        name, start = begun
        self.sink.add(
            Span(
                name=name,
                context=context,
                start=start,
                end=time.time_ns(),
                attributes=_about(decision),
                error=decision.error or decision.score_error,
            )
        )

    def judge(self, judge: Judge) -> Judge:
        """Return *judge*, with a span in each traced cycle."""

        async def traced(cycle: Cycle) -> Verdicts:
            before, parent = cycle.traceparent, parse(cycle.traceparent)
            if parent is None:
                return await judge(cycle)
            with span(self.sink, parent, "filter") as attributes:
                cycle.traceparent = traceparent()
                try:
                    verdicts = await judge(cycle)
                finally:
                    cycle.traceparent = before
                attributes.update(_about_phase(verdicts.record))
                return verdicts

        return traced

    def rank(self, rank: Rank) -> Rank:
        """Return *rank*, with a span in each traced cycle."""

        async def traced(cycle: Cycle, nodes: NodeSet) -> Scores:
            before, parent = cycle.traceparent, parse(cycle.traceparent)
            if parent is None:
                return await rank(cycle, nodes)
            with span(self.sink, parent, "score") as attributes:
                cycle.traceparent = traceparent()
                try:
                    scores = await rank(cycle, nodes)
                finally:
                    cycle.traceparent = before
                attributes.update(_about_phase(scores.record))
                return scores

        return traced


class TracedCycles(Cycles):
    """Answers calls as others do, with spans."""

    def __init__(self, cycles: Cycles, tracer: Tracer, log: DecisionLog) -> None:
        """Have *cycles* answer; *log* has what binds are linked to."""
        self._cycles = cycles
        self._tracer = tracer
        self._log = log

    async def filter(self, cycle: Cycle) -> None:
        """Rule nodes out; this begins a scheduling cycle."""
        cycle.traceparent = self._tracer.begin("scheduling cycle")
        await self._cycles.filter(cycle)

    async def prioritize(self, cycle: Cycle) -> Sequence[int]:
        """Rank nodes; this is a part of the cycle of the pod, if there is one."""
        pod = cycle.pod
        decision = self._log.latest(pod.namespace, pod.name, pod.uid)
        parent = parse(decision.traceparent) if decision else None
        if parent is not None:
            with span(self._tracer.sink, parent, "prioritize"):
                cycle.traceparent = traceparent()
                return await self._cycles.prioritize(cycle)
        if decision is None:
            cycle.traceparent = self._tracer.begin("scheduling cycle")
        return await self._cycles.prioritize(cycle)

    async def preempt(self, cycle: Cycle) -> None:
        """Drop the candidates on which the pod could not run even without the victims."""
        cycle.traceparent = self._tracer.begin("preemption")
        await self._cycles.preempt(cycle)

    async def bind(self, call: BindCall) -> None:
        """Bind the pod, in a trace of its own if its cycle was traced."""
        decision = self._log.latest(call.namespace, call.name, call.uid)
        link = parse(decision.traceparent) if decision else None
        if link is None:
            return await self._cycles.bind(call)
        about = {**_pod(call.namespace, call.name, call.uid), "k8s.node.name": call.node}
        with span(self._tracer.sink, None, "binding cycle", link=link, attributes=about):
            traced = msgspec.structs.replace(call, traceparent=traceparent())
            return await self._cycles.bind(traced)


def _pod(namespace: str, name: str, uid: str) -> dict[str, Value]:
    return {"k8s.namespace.name": namespace, "k8s.pod.name": name, "k8s.pod.uid": uid}


def _about(decision: Decision) -> Mapping[str, Value]:
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


def _about_phase(record: FilterRecord | ScoreRecord) -> dict[str, Value]:
    about: dict[str, Value] = {
        "moorage.nodes": record.nodes,
        "moorage.cached_nodes": record.cached_nodes,
        "moorage.shards": record.shards,
    }
    if isinstance(record, FilterRecord):
        about["moorage.feasible"] = record.feasible
    return about
