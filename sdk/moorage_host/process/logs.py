"""Logs of every process: one line for each event on stderr, whoever logs it.

Modules take `structlog.get_logger()` and log a constant sentence plus fields. Libraries that use
the standard `logging` come out in the same form. Tracebacks are text without local variables,
which may hold pods.

Whoever can make a process log something can make it do so a thousand times a second. So a bad call
costs one short line, and equal ones are counted; `log_writer` writes them.
"""

import atexit
import logging
import sys
import time
import traceback
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal

import msgspec
import structlog
from structlog.typing import Processor

from moorage.units.printable import printable
from moorage_host.process.log_writer import DROPS, LogWriter

MAX_EVENTS: Final = 1024
"""Events whose repetitions are counted apart; with more, all counts begin again."""

SHORTEST: Final = 32
"""Characters to which the text of a field is cut at most."""

CUT: Final = "..."

NEEDED: Final = ("timestamp", "level", "event")

EventDict = MutableMapping[str, Any]
Render = Callable[[Any, str, EventDict], str | bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """How much may be logged; sizes in bytes, times in seconds."""

    queue: int = 2000
    """Lines that may wait to be written."""
    line: int = 1024
    """Size of a line without a traceback."""
    traceback: int = 8192
    """Size of a line with one."""
    traceback_interval: float = 60.0
    """The time between two tracebacks of one event; between them there is the error's text."""
    repeats: int = 20
    """How often a warning or error is logged in a row."""
    repeat_interval: float = 1.0
    """The time between two such lines after that."""
    flush_timeout: float = 1.0
    """Time at the end of the process for lines that wait."""


class _Bucket(msgspec.Struct):
    tokens: float
    filled: float
    suppressed: int = 0


class Repeats:
    """Which events may be logged again. Any thread may ask, also in the middle of another question.

    Args:
        limits: How often.
        clock: A monotonic clock.
    """

    def __init__(self, limits: LogLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        # By hash: an event may be as long as who logs it likes.
        self._buckets: dict[int, _Bucket] = {}
        self._tracebacks: dict[int, float] = {}

    def admit(self, *names: str) -> int | None:
        """Return how many equal events were not logged since the last one; None if this one is not.

        An event is named by a constant sentence. The fields that come with it do not count.
        """
        now, limits, event = self._clock(), self._limits, hash(names)
        bucket = self._buckets.get(event)
        if bucket is None:
            if len(self._buckets) >= MAX_EVENTS:
                self._buckets.clear()
            bucket = self._buckets[event] = _Bucket(limits.repeats, now)
        gained = (now - bucket.filled) / limits.repeat_interval
        bucket.tokens, bucket.filled = min(limits.repeats, bucket.tokens + gained), now
        if bucket.tokens < 1:
            bucket.suppressed += 1
            return None
        bucket.tokens -= 1
        suppressed, bucket.suppressed = bucket.suppressed, 0
        return suppressed

    def admit_traceback(self, *names: str | int) -> bool:
        """Return whether the traceback of an error may be shown again; names say where it is."""
        now, place = self._clock(), hash(names)
        last = self._tracebacks.get(place)
        if last is not None and now - last < self._limits.traceback_interval:
            return False
        if len(self._tracebacks) >= MAX_EVENTS:
            self._tracebacks.clear()
        self._tracebacks[place] = now
        return True


def fitted(render: Render, limits: LogLimits) -> Callable[[Any, str, EventDict], str]:
    """Return what renders an event so that its line is no longer than allowed.

    The longest texts are cut first: of a traceback the middle, of others the end.
    """

    def fit(logger: Any, method: str, event: EventDict) -> str:
        limit = limits.traceback if "exception" in event else limits.line
        fields = {key: _shortened(value, key, limit) for key, value in event.items()}
        while len(line := _decoded(render(logger, method, dict(fields))).encode()) > limit:
            key = max(fields, key=lambda key: len(str(fields[key])))
            text = str(fields[key])
            if len(text) > SHORTEST:
                fields[key] = _shortened(text, key, max(len(text) * 3 // 4, SHORTEST))
            elif rest := [key for key in fields if key not in NEEDED]:
                del fields[rest[-1]]
            else:
                return line.decode()[:limit]
        return line.decode()

    return fit


def _shortened(value: Any, key: str, length: int) -> Any:
    if isinstance(value, bool | int | float | None):
        return value
    text = value if isinstance(value, str) else str(value)
    if len(text) <= length:
        return value
    if key != "exception":
        return text[: length - len(CUT)] + CUT
    head = length // 4
    return f"{text[:head]}\n{CUT}\n{text[head - length :]}"


def _decoded(line: str | bytes) -> str:
    return line if isinstance(line, str) else line.decode()


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


def _text() -> Render:
    renderer = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )

    def render(logger: Any, method: str, event: EventDict) -> str:
        """Render an event so that no text in it can look like another line."""
        exception = event.pop("exception", None)
        event = {printable(name): _fit_for_people(value) for name, value in event.items()}
        if isinstance(exception, str):
            event["exception"] = "\n".join(f"  {printable(line)}" for line in exception.split("\n"))
        return str(renderer(logger, method, event))

    return render


def _fit_for_people(value: Any) -> Any:
    if isinstance(value, bool | int | float | None):
        return value
    return printable(value if isinstance(value, str) else repr(value))


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
