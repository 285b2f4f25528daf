"""Logs of every process: one line for each event on stderr, whoever logs it.

Modules take `structlog.get_logger()` and log a constant sentence plus fields. Libraries that use
the standard `logging` come out in the same form. Tracebacks are text without local variables,
which may hold pods. Lines are written in the background (`log_writer`) and bounded (`log_limits`).
"""

import atexit
import logging
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal

import structlog
from structlog.typing import Processor

from moorage_host.process.log_limits import EventDict, LogLimits, Repeats, fitted
from moorage_host.process.log_writer import DROPS, LogWriter

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "text"]

Flush = Callable[[], None]

_SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]


def configure_logging(
    level: LogLevel = "info", form: LogFormat = "auto", limits: LogLimits | None = None
) -> Flush:
    """Send all logs of this process to stderr, from the given level up.

    Returns:
        What waits for lines that are not written yet, for a bounded time; to be called at the end.
    """
    limits = limits or LogLimits()
    least = logging.getLevelNamesMapping()[level.upper()]
    text = form == "text" or (form == "auto" and sys.stderr.isatty())
    writer = LogWriter(sys.stderr, limits.queue)
    repeats = Repeats(limits)
    render = _text() if text else structlog.processors.JSONRenderer(default=str)
    rendering = _Rendering(repeats, fitted(render, limits))
    structlog.configure(
        processors=[_drop_repeats(repeats), *_SHARED, rendering],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=lambda *_: _Logger(writer),
        cache_logger_on_first_use=True,
    )
    _route_standard_logging(_Handler(writer, repeats), least, rendering)

    def flush() -> None:
        writer.flush(limits.flush_timeout)

    atexit.register(flush)
    return flush


def _text() -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )


class _Logger:
    """What structlog hands its lines to."""

    def __init__(self, writer: LogWriter) -> None:
        self.msg = writer.put

    def __getattr__(self, _method: str) -> Callable[[str], None]:
        return self.msg


class _Handler(logging.Handler):
    """What the standard library hands its records to."""

    def __init__(self, writer: LogWriter, repeats: Repeats) -> None:
        super().__init__()
        self._writer = writer
        self._repeats = repeats

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            suppressed = self._repeats.admit(record.name, str(record.msg))
            if suppressed is None:
                DROPS.count("repeated")
                return
            record.suppressed = suppressed
        try:
            self._writer.put(self.format(record))
        except Exception:  # noqa: BLE001 - its arguments may not fit its message
            DROPS.count("write")


def _drop_repeats(repeats: Repeats) -> Processor:
    def process(_logger: Any, method: str, event: EventDict) -> EventDict:
        if method in ("debug", "info"):
            return event
        suppressed = repeats.admit(str(event.get("event")))
        if suppressed is None:
            DROPS.count("repeated")
            raise structlog.DropEvent
        if suppressed:
            event["suppressed"] = suppressed
        return event

    return process


class _Rendering:
    """Makes the line of an event, with each traceback only once in a while."""

    def __init__(self, repeats: Repeats, render: Callable[[Any, str, EventDict], str]) -> None:
        self._repeats = repeats
        self._render = render

    def __call__(self, logger: Any, method: str, event: EventDict) -> str:
        try:
            self._shorten_error(event)
            event = structlog.processors.format_exc_info(logger, method, event)
            return self._render(logger, method, event)
        except Exception as error:  # noqa: BLE001 - a field that has no text must not fail a call
            problem = f"{type(error).__name__} in its fields"
            sentence = str(event.get("event"))
            return self._render(logger, method, {"event": sentence, "log_problem": problem})

    def _shorten_error(self, event: EventDict) -> None:
        error = _error_of(event.get("exc_info"))
        if error and not self._repeats.admit_traceback(str(event.get("event")), *_place(error)):
            del event["exc_info"]
            event.setdefault("error", "".join(traceback.format_exception_only(error)).strip())


def _error_of(exc_info: object) -> BaseException | None:
    """Return the error of an event, given in any of three forms; of a group the first."""
    if isinstance(exc_info, BaseException):
        error: object = exc_info
    elif isinstance(exc_info, tuple):
        error = exc_info[1]
    else:
        error = sys.exc_info()[1] if exc_info else None
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, BaseException) else None


def _place(error: BaseException) -> tuple[str, str, int]:
    """Return the type of an error and where it was raised."""
    step: TracebackType | None = error.__traceback__
    if step is None:
        return type(error).__name__, "", 0
    while step.tb_next:
        step = step.tb_next
    return type(error).__name__, step.tb_frame.f_code.co_filename, step.tb_lineno


def _add_suppressed(_logger: Any, _method: str, event: EventDict) -> EventDict:
    suppressed = getattr(event.get("_record"), "suppressed", 0)
    if suppressed:
        event["suppressed"] = suppressed
    return event


def _route_standard_logging(handler: logging.Handler, level: int, rendering: Processor) -> None:
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.add_logger_name],
            processors=[
                _add_suppressed,
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                rendering,
            ],
        )
    )
    logging.captureWarnings(capture=True)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    # The debug logs of asyncio and aiohttp help nobody here.
    root.setLevel(max(level, logging.INFO))
