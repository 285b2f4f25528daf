"""A small OpenTelemetry collector: takes spans over OTLP/HTTP, and keeps them for a test."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """A span as it came; ids are in hexadecimal digits, "" for none."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    links: tuple[tuple[str, str], ...]
    start: int
    end: int
    error: str
    kind: int
    attributes: dict[str, Any]


@dataclass
class Collector:
    """The spans that have come.

    Attributes:
        url: Where to send them.
        spans: In order of arrival.
        status: What senders are answered.
    """

    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)
    status: int = 200

    def of(self, trace: str) -> list[ReceivedSpan]:
        """Return the spans of a trace."""
        return [span for span in list(self.spans) if span.trace == trace]

    def find(self, name: str, **attributes: Any) -> list[ReceivedSpan]:
        """Return the spans with a name and some attributes; `_` in their names is a dot."""
        wanted = {key.replace("_", "."): value for key, value in attributes.items()}
        return [
            span
            for span in list(self.spans)
            if span.name == name and wanted.items() <= span.attributes.items()
        ]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Take spans until the block is left."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            if collector.status == 200:
                collector.spans += _read(ExportTraceServiceRequest.FromString(body))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(collector.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()


def _read(request: ExportTraceServiceRequest) -> Iterator[ReceivedSpan]:
    for resource in request.resource_spans:
        service = _values(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield ReceivedSpan(
                    service=service,
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    error=span.status.message,
                    kind=span.kind,
                    attributes=_values(span.attributes),
                )


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair) for pair in pairs}


def _value(pair: KeyValue) -> Any:
    return getattr(pair.value, pair.value.WhichOneof("value") or "string_value")
