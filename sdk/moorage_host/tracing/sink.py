"""Opens where a process sends its spans, if it does: settings, and the check of the URL."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from opentelemetry.trace import Tracer

from moorage.errors import ConfigurationError
from moorage_host.process.lifecycle import AdminSettings
from moorage_host.settings import setting
from moorage_host.tls.security import is_local


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingSettings(AdminSettings):
    """Settings of the processes whose spans make up a trace."""

    trace_endpoint: str = setting(
        "",
        "URL of an OpenTelemetry collector (OTLP over HTTP), such as http://127.0.0.1:4318; needs"
        " moorage[otel]. By default OTEL_EXPORTER_OTLP_ENDPOINT.",
    )
    trace_insecure: bool = setting(
        False,
        "Send spans, which name pods and nodes, in plain text to other machines too.",
    )
    trace_flush_timeout: float = 2.0
    """Seconds for spans that wait when the process ends."""
    trace_queue: int = 4096
    """Spans that may wait to be sent; more are dropped and counted."""


OPTION = "--trace-endpoint"
VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
OFF = "OTEL_SDK_DISABLED"

PATH = "/v1/traces"

if TYPE_CHECKING:
    from moorage_host.tracing.otel import Spans

log = structlog.get_logger()


@asynccontextmanager
async def sending_spans(service: str, settings: TracingSettings) -> AsyncIterator[Tracer | None]:
    """Have spans of a tracer sent until the block is left; None if nobody wants them.

    Raises:
        ConfigurationError: `--trace-endpoint` cannot be used, or OpenTelemetry is missing.
    """
    spans = _open(service, settings)
    try:
        yield None if spans is None else spans.tracer
    finally:
        if spans is not None:
            await asyncio.to_thread(spans.close, settings.trace_flush_timeout)


def _open(service: str, settings: TracingSettings) -> "Spans | None":
    source, url = _endpoint(settings)
    if not url or os.environ.get(OFF, "").lower() == "true":
        return None
    try:
        _check(url, settings.trace_insecure)
        spans = _spans(service, url, settings.trace_queue)
    except ConfigurationError as error:
        if source == OPTION:
            raise ConfigurationError(f"{source}: {error}") from error
        # Operators set such variables in all pods of a namespace.
        log.warning("There are no traces", variable=source, problem=str(error))
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


def _endpoint(settings: TracingSettings) -> tuple[str, str]:
    """Return which setting has the URL to send to, and the URL; "" if none has."""
    if settings.trace_endpoint:
        return OPTION, _with_path(settings.trace_endpoint)
    complete, base = (os.environ.get(name, "") for name in VARIABLES)
    return (VARIABLES[0], complete) if complete else (VARIABLES[1], base and _with_path(base))


def _with_path(url: str) -> str:
    base = url.rstrip("/")
    return base if base.endswith(PATH) else base + PATH


def _check(url: str, is_plain_text_allowed: bool) -> None:
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
            "with https, or --trace-insecure"
        )
