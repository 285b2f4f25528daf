"""Records and sends spans with OpenTelemetry's SDK, over OTLP/HTTP from a thread of its own.

The OTEL_* variables of exporter, batches and resource count as in any program. Every span that is
begun is recorded, since only calls that the gateway has chosen begin one.
"""

import os
import socket
import threading
from collections.abc import Sequence

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from moorage import __version__
from moorage_host.tracing.spans import SPANS

_UNNAMED = "unknown_service"
_BATCH = 512


class Spans:
    """Records spans with `tracer`, and has a thread send them."""

    def __init__(self, service: str, url: str, limit: int) -> None:
        """Send to *url*; at most *limit* spans wait."""
        self._provider = TracerProvider(
            sampler=ALWAYS_ON, resource=_resource(service), shutdown_on_exit=False
        )
        self._provider.add_span_processor(_CountingProcessor(_CountingExporter(url), limit))
        self.tracer = self._provider.get_tracer("moorage", __version__)

    def close(self, seconds: float) -> None:
        """Send what waits, for so long at most."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(seconds)


class _CountingProcessor(BatchSpanProcessor):
    """Drops and counts the spans beyond a limit; spans of one thread end in it."""

    def __init__(self, exporter: "_CountingExporter", limit: int) -> None:
        batch = min(int(os.environ.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") or _BATCH), limit)
        super().__init__(exporter, max_queue_size=limit, max_export_batch_size=batch)
        self._sending, self._limit, self._taken = exporter, limit, 0

    def on_end(self, span: ReadableSpan) -> None:
        if self._taken - self._sending.done >= self._limit:
            SPANS.labels("dropped").inc()
            return
        self._taken += 1
        super().on_end(span)


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
