"""Writes the failures of one plugin to the log, with its tracebacks, without flooding it."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from moorage.execution.failure import own_traceback, where
from moorage.plugin.base import Plugin

QUIET_SECONDS: Final = 30.0
"""How long failures at the same line of a plugin are only counted after one was logged."""

MAX_LINES: Final = 64
"""Lines of a plugin whose failures are counted apart; more start again."""


@dataclass(slots=True)
class _Line:
    """A line at which a plugin fails: when that was logged last, and how often it has since."""

    logged: float
    more: int = 0


@dataclass(slots=True)
class FailureLog:
    """The log of one plugin's failures.

    Attributes:
        clock: A monotonic clock, in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _lines: dict[tuple[str, str, str], _Line] = field(default_factory=dict)

    def write(self, plugin: Plugin, point: str, problem: str, error: BaseException) -> None:
        """Log that *plugin* failed in *point*, with the traceback of its own code."""
        now = self.clock()
        key = (point, type(error).__name__, where(error, plugin))
        line = self._lines.get(key)
        if line is not None and now - line.logged < QUIET_SECONDS:
            line.more += 1
            return
        if len(self._lines) >= MAX_LINES:
            self._lines.clear()
        self._lines[key] = _Line(now)
        repeated = f" ({line.more} times more since it was logged)" if line and line.more else ""
        traceback = own_traceback(error)
        logging.getLogger(plugin.name).warning(
            "%s failed: %s%s",
            point,
            problem,
            repeated,
            exc_info=(type(error), error, traceback) if traceback else None,
        )
