"""Sends spans with OpenTelemetry, over OTLP/HTTP from a thread of its own.

The OTEL_* variables of exporter, batches and resource count as in any program; what is sampled the
gateway decides.
"""

import os
import socket
import threading
from collections.abc import Sequence

import requests
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from moorage import __version__
from moorage_host.tracing.span import SPANS, Span, SpanContext

_UNNAMED = "unknown_service"
_BATCH = 512
_SAMPLED = trace.TraceFlags(trace.TraceFlags.SAMPLED)
_KINDS = {"internal": trace.SpanKind.INTERNAL, "server": trace.SpanKind.SERVER}


class OtelSink:
    """Queues spans for the thread that sends them; called by one thread only."""

    def __init__(self, service: str, url: str, limit: int) -> None:
        """Send to *url*; at most *limit* spans wait."""
        self._limit = limit
        self._taken = 0
        self._exporter = _CountingExporter(url)
        self._ids = _GivenIds()
        batch = min(int(os.environ.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") or _BATCH), limit)
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=_resource(service),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(self._exporter, max_queue_size=limit, max_export_batch_size=batch)
        )
        self._tracer = self._provider.get_tracer("moorage", __version__)

    def add(self, span: Span) -> None:
        """Have a span sent, or drop it if too many wait."""
        if self._taken - self._exporter.done >= self._limit:
            SPANS.labels("dropped").inc()
            return
        self._taken += 1
        self._ids.next = span.context
        made = self._tracer.start_span(
            span.name,
            context=_parent(span),
            kind=_KINDS[span.kind],
            attributes=span.attributes,
            links=[trace.Link(_context(span.link))] if span.link else (),
            start_time=span.start,
        )
        if span.error:
            made.set_status(trace.StatusCode.ERROR, span.error)
        made.end(span.end)

    def close(self, seconds: float) -> None:
        """Send what waits, for so long at most."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(seconds)


class _GivenIds(IdGenerator):
    """Gives each span the ids that it has already."""

    def __init__(self) -> None:
        self.next = SpanContext(1, 1)

    def generate_span_id(self) -> int:
        return self.next.span_id

    def generate_trace_id(self) -> int:
        return self.next.trace_id


class _CountingExporter(SpanExporter):
    """Counts what it sends.

    Attributes:
        done: How many spans it has sent, or failed to; only the sending thread writes it.
    """

    def __init__(self, url: str) -> None:
        session = requests.Session()
        session.trust_env = False  # a proxy for the outside world must not see spans
        self._exporter = OTLPSpanExporter(url, session=session)
        self.done = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            self.done += len(spans)
            is_sent = result is SpanExportResult.SUCCESS
            SPANS.labels("sent" if is_sent else "failed").inc(len(spans))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _resource(service: str) -> Resource:
    found = Resource.create({SERVICE_VERSION: __version__})  # with OTEL_RESOURCE_ATTRIBUTES
    own = {}
    if str(found.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED):
        own[SERVICE_NAME] = f"moorage-{service}"
    if SERVICE_INSTANCE_ID not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        own[SERVICE_INSTANCE_ID] = f"{socket.gethostname()}-{os.getpid()}"
    return found.merge(Resource(own))


def _context(context: SpanContext) -> trace.SpanContext:
    return trace.SpanContext(
        context.trace_id, context.span_id, is_remote=True, trace_flags=_SAMPLED
    )


def _parent(span: Span) -> Context:
    if not span.parent:
        return Context()
    parent = _context(SpanContext(span.context.trace_id, span.parent))
    return trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())
