"""The spans of a cycle at a replica, if the gateway traces it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from moorage.execution import Supervisor
from moorage.v1 import types_pb2 as pb
from moorage_host.tracing.current import plugin_spans, span
from moorage_host.tracing.span import SpanContext, SpanSink, parse


def traced_cycle(
    sink: SpanSink | None, cycle: pb.Cycle, supervisor: Supervisor, start: float
) -> AbstractContextManager[None] | None:
    """Return what has spans of a cycle that began at *start*; None if it is not traced."""
    parent = parse(cycle.traceparent) if sink is not None else None
    return _traced(sink, parent, cycle, supervisor, start) if sink and parent else None


@contextmanager
def _traced(
    sink: SpanSink, parent: SpanContext, cycle: pb.Cycle, supervisor: Supervisor, start: float
) -> Iterator[None]:
    about = {"moorage.profile": cycle.profile}
    with span(sink, parent, "replica cycle", kind="server", start=start, attributes=about):
        try:
            yield
        finally:
            plugin_spans(supervisor.runs)
