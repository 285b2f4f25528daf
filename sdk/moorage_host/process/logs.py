"""Logs of every process: one line for each event on stderr, whoever logs it.

Modules take `structlog.get_logger()` and log a constant sentence plus fields. Libraries that use
the standard `logging` come out in the same form. Tracebacks are text without local variables,
which may hold pods.
"""

import logging
import sys
from typing import Literal

import structlog
from aiohttp.http_exceptions import HttpProcessingError
from structlog.typing import Processor

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "text"]

_SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


def configure_logging(level: LogLevel = "info", form: LogFormat = "auto") -> None:
    """Send all logs of this process to stderr, from the given level up."""
    least = logging.getLevelNamesMapping()[level.upper()]
    text = form == "text" or (form == "auto" and sys.stderr.isatty())
    rendering = _text() if text else _json()
    structlog.configure(
        processors=[*_SHARED, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _route_standard_logging(least, rendering)


def _text() -> list[Processor]:
    return [
        structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    ]


def _json() -> list[Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]


def _route_standard_logging(level: int, rendering: list[Processor]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    logging.captureWarnings(capture=True)
    logging.getLogger("aiohttp.server").addFilter(_as_one_line)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(
        max(level, logging.INFO)
    )  # the debug logs of asyncio and aiohttp help nobody here


def _as_one_line(record: logging.LogRecord) -> bool:
    """Leave out the traceback of bytes that are no HTTP, and the bytes, which may be a token."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.msg, record.args = "A request was no HTTP: %s", (type(error).__name__,)
        record.exc_info = None
    return True
