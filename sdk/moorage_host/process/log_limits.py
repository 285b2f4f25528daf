"""Bounds what one event, and one that repeats, may add to the log.

Called by `logs`. Whoever can make a process log something can make it do so a thousand times a
second: a bad call costs one short line, and equal ones are counted.
"""

import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

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
        while len(line := _text(render(logger, method, dict(fields))).encode()) > limit:
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


def _text(line: str | bytes) -> str:
    return line if isinstance(line, str) else line.decode()
