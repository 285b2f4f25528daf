"""Gives each phase of a traced cycle a span, and the replicas its context."""

from typing import Protocol, TypeVar

from msgspec.structs import replace

from gateway.calls import CycleRequest
from gateway.decisions.records import FilterRecord, PhaseName, ScoreRecord
from moorage_host.tracing.current import span, traceparent
from moorage_host.tracing.span import SpanSink, Value, parse


class PhaseResult(Protocol):
    """The result of a phase."""

    @property
    def record(self) -> FilterRecord | ScoreRecord:
        """What it did, for the decision."""


Result = TypeVar("Result", bound=PhaseResult)
ResultT = TypeVar("ResultT", bound=PhaseResult, covariant=True)


class Phase(Protocol[ResultT]):
    """A phase of a scheduling cycle."""

    async def run(self, request: CycleRequest) -> ResultT:
        """Return the result for the nodes of the request."""


class TracedPhase(Phase[Result]):
    """A phase with a span for each run in a traced cycle."""

    def __init__(self, phase: Phase[Result], name: PhaseName, sink: SpanSink) -> None:
        """Run *phase*; send its spans to *sink*."""
        self._phase = phase
        self._name = name
        self._sink = sink

    async def run(self, request: CycleRequest) -> Result:
        """Return the result for the nodes of the request; raises what the phase raises."""
        parent = parse(request.traceparent)
        if parent is None:
            return await self._phase.run(request)
        with span(self._sink, parent, self._name) as attributes:
            result = await self._phase.run(replace(request, traceparent=traceparent()))
            attributes.update(_about(result.record))
            return result


def _about(record: FilterRecord | ScoreRecord) -> dict[str, Value]:
    about: dict[str, Value] = {
        "moorage.nodes": record.nodes,
        "moorage.cached_nodes": record.cached_nodes,
        "moorage.shards": record.shards,
    }
    if isinstance(record, FilterRecord):
        about["moorage.feasible"] = record.feasible
    return about
