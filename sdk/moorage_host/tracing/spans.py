"""Spans by OpenTelemetry's API, for the calls that are traced; the gateway decides which these are.

A traced call carries a W3C `traceparent`. Its span is the current one of the task that answers, so
code that does not see the request adds spans below it. Nothing here runs for other calls but a test
of an empty text, or one look at the task's context.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue
from prometheus_client import Counter

from moorage.execution import PluginRun

Attributes = Mapping[str, AttributeValue]

SPANS = Counter(
    "moorage_spans_total",
    "Spans of sampled traces: sent, failed (the collector refused), dropped (too many waited).",
    ("outcome",),
)

_W3C = TraceContextTextMapPropagator()
_tracer: ContextVar[trace.Tracer | None] = ContextVar("tracer", default=None)
"""Records what the current span's task adds below it."""


def sampled(traceparent: str) -> Context | None:
    """Return the context that a `traceparent` names; None if it names none that is sampled."""
    if not traceparent:
        return None
    found = _W3C.extract({"traceparent": traceparent}, Context())
    named = trace.get_current_span(found).get_span_context()
    return found if named.is_valid and named.trace_flags.sampled else None


def traceparent(span: trace.Span | None = None) -> str:
    """Return the `traceparent` of a span, by default of the current one; "" if there is none."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, None if span is None else trace.set_span_in_context(span))
    return carrier.get("traceparent", "")


@contextmanager
def span(
    tracer: trace.Tracer,
    name: str,
    parent: Context | None,
    *,
    kind: trace.SpanKind = trace.SpanKind.INTERNAL,
    start: float | None = None,
    links: Sequence[trace.Link] = (),
    attributes: Attributes | None = None,
) -> Iterator[trace.Span]:
    """Make a span current while the block lasts; an exception of the block is its error.

    Args:
        tracer: Records the span, and those that the block adds.
        name: What the block does.
        parent: What the span belongs to; None is the current span, an empty context a new trace.
        kind: Whether the block answers another process.
        start: When the work began, by `time.perf_counter()`; now, if not given.
        links: Spans of other traces that led to this one.
        attributes: What else is known.
    """
    token = _tracer.set(tracer)
    try:
        with tracer.start_as_current_span(
            name,
            parent,
            kind=kind,
            start_time=None if start is None else _unix_nanos(start),
            links=links,
            attributes=attributes,
            record_exception=False,  # its traceback would name what users call theirs
        ) as made:
            yield made
    finally:
        _tracer.reset(token)


def step(name: str) -> AbstractContextManager[object]:
    """Make a span below the current one while the block lasts, if there is a current one."""
    tracer = _tracer.get()
    return nullcontext() if tracer is None else span(tracer, name, None)


def plugin_spans(runs: Iterable[PluginRun]) -> None:
    """Add spans of what plugins did below the current span, if there is one."""
    if _tracer.get() is None:
        return
    for run in runs:
        extra = {"moorage.skipped": True} if run.skipped else None
        plugin_span(run.plugin, run.start, run.seconds, run.failure, extra)


def plugin_span(
    plugin: str, start: float, seconds: float, error: str = "", attributes: Attributes | None = None
) -> None:
    """Add a span of what one plugin did from *start*, by `time.perf_counter()`, if traced."""
    if (tracer := _tracer.get()) is None:
        return
    begun = _unix_nanos(start)
    about = {"moorage.plugin": plugin, **(attributes or {})}
    made = tracer.start_span(f"plugin {plugin}", start_time=begun, attributes=about)
    if error:
        made.set_status(trace.StatusCode.ERROR, error)
    made.end(begun + int(seconds * 1e9))


def _unix_nanos(seconds: float) -> int:
    """Return when `time.perf_counter()` had a value, in nanoseconds of Unix time."""
    return time.time_ns() - int((time.perf_counter() - seconds) * 1e9)
