"""Opens where a process sends its spans, by OpenTelemetry's own variables, if these say so."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from opentelemetry.trace import Tracer

from moorage.errors import ConfigurationError
from moorage_host.tls.security import is_local

VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
OFF = "OTEL_SDK_DISABLED"
INSECURE = "OTEL_EXPORTER_OTLP_INSECURE"
"""Whether spans, which name pods and nodes, may go in plain text to other machines too."""

QUEUE = 4096
"""Spans that may wait to be sent: a collector's pause of seconds, with every cycle traced."""

FLUSH_SECONDS = 2.0
"""Time for spans that wait when the process ends."""

PATH = "/v1/traces"

if TYPE_CHECKING:
    from moorage_host.tracing.otel import Spans

log = structlog.get_logger()


@asynccontextmanager
async def sending_spans(
    service: str, *, queue: int = QUEUE, flush_seconds: float = FLUSH_SECONDS
) -> AsyncIterator[Tracer | None]:
    """Have spans of a tracer sent until the block is left; None if nobody wants them.

    More spans than the *queue* has room for are dropped and counted.
    """
    spans = _open(service, queue)
    try:
        yield None if spans is None else spans.tracer
    finally:
        if spans is not None:
            await asyncio.to_thread(spans.close, flush_seconds)


def _open(service: str, queue: int) -> "Spans | None":
    variable, url = _endpoint()
    if not url or _is_true(OFF):
        return None
    try:
        _check(url, is_plain_text_allowed=_is_true(INSECURE))
        spans = _spans(service, url, queue)
    except ConfigurationError as error:
        # Operators set such variables in all pods of a namespace: that must not keep one from work.
        log.warning("There are no traces", variable=variable, problem=str(error))
        return None
    log.info("Spans are sent", url=url)
    return spans


def _spans(service: str, url: str, limit: int) -> "Spans":
    try:
        from moorage_host.tracing.otel import Spans
    except ImportError as error:
        raise ConfigurationError(
            f"OpenTelemetry is not installed ({error}): pip install '.[otel]' in a clone"
        ) from error
    return Spans(service, url, limit)


def _is_true(variable: str) -> bool:
    return os.environ.get(variable, "").lower() == "true"


def _endpoint() -> tuple[str, str]:
    """Return which variable has the URL to send to, and the URL; "" if none has."""
    complete, base = (os.environ.get(name, "") for name in VARIABLES)
    return (VARIABLES[0], complete) if complete else (VARIABLES[1], base and _with_path(base))


def _with_path(url: str) -> str:
    base = url.rstrip("/")
    return base if base.endswith(PATH) else base + PATH


def _check(url: str, *, is_plain_text_allowed: bool) -> None:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.port != 0 and bool(parts.hostname)
    except ValueError:
        is_usable = False
    if "@" in url:
        raise ConfigurationError("a URL must hold no password; use OTEL_EXPORTER_OTLP_HEADERS")
    if not is_usable:
        raise ConfigurationError(f"{url[:200]!r} is no URL such as http://127.0.0.1:4318")
    if parts.scheme == "http" and not (is_plain_text_allowed or is_local(parts.hostname or "")):
        raise ConfigurationError(
            f"{parts.hostname} would get the names of pods and nodes in plain text: give a URL "
            f"with https, or set {INSECURE}=true"
        )
