"""Describes what went wrong in a plugin, with the node, the file and the line, and logs it."""

import inspect
import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

from moorage.execution.alarm import BudgetExceededError
from moorage.plugin.errors import WrongAnswerError, place_of
from moorage.plugin.hooks import FilterPlugin, Plugin, ScorePlugin
from moorage.snapshot import Node

FAILURES: Final = (Exception, BudgetExceededError, SystemExit, KeyboardInterrupt)
"""What background work may raise; everything else, such as cancellation, is not the plugin's."""

MAX_MESSAGE_LENGTH: Final = 500
"""How many characters of an exception's message are kept."""

_LOOPS: Final = frozenset((FilterPlugin.filter.__code__, ScorePlugin.score.__code__))
"""The code that calls per-node methods for one node after the other."""

MAX_FRAMES: Final = 20
"""How many calls of a plugin's code, the innermost ones, are in the traceback that is logged."""

_OURS: Final = ("moorage.", "asyncio.")
"""Modules that call plugins, and that plugins call."""

QUIET_SECONDS: Final = 30.0
"""How long failures at the same line of a plugin are only counted after one was logged."""

MAX_LINES: Final = 64
"""Lines of a plugin whose failures are counted apart; more start again."""


def problem_of(error: BaseException, plugin: Plugin) -> str:
    """Describe *error* in one line; equal causes give equal texts."""
    if isinstance(error, WrongAnswerError):
        return str(error)
    message = " ".join(str(error).split())
    if len(message) > MAX_MESSAGE_LENGTH:
        message = f"{message[:MAX_MESSAGE_LENGTH]}…"
    described = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"{described}{_node(error)}{where(error, plugin)}"


def overrun_of(
    error: BaseException, plugin: Plugin, budget_seconds: float, share: float = 1.0
) -> str:
    """Describe, in one line, where the plugin was when its time, or a share of it, was up."""
    problem = f"it took longer than its time budget of {budget_seconds:g} s"
    if share < 1:
        problem += f", of which former overruns leave {share:.0%},"
    return f"{problem}{_node(error)}{where(error, plugin)}"


def where(error: BaseException, plugin: Plugin) -> str:
    """Return the innermost line in the plugin's own file, or the innermost line, in brackets."""
    try:
        file = inspect.getfile(type(plugin))
    except TypeError:  # the class was not defined in a file
        file = ""
    # A timeout's own traceback ends in asyncio; its cause was thrown into the plugin.
    errors = [error, error.__cause__] if error.__cause__ else [error]
    frames = [frame for e in errors for frame in traceback.extract_tb(e.__traceback__)]
    own = [frame for frame in frames if frame.filename == file]
    chosen = own or frames
    return f" ({place_of(chosen[-1].filename, chosen[-1].lineno)})" if chosen else ""


def own_traceback(error: BaseException) -> TracebackType | None:
    """Return the traceback from the first to the last call of the plugin's code, or None."""
    steps, step = list[TracebackType](), error.__traceback__
    while step:
        steps.append(step)
        step = step.tb_next
    modules = [step.tb_frame.f_globals.get("__name__", "") for step in steps]
    own = [index for index, module in enumerate(modules) if not module.startswith(_OURS)]
    result: TracebackType | None = None
    for step in reversed(steps[own[0] : own[-1] + 1][-MAX_FRAMES:] if own else []):
        result = TracebackType(result, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return result


def _node(error: BaseException) -> str:
    """Return for which node a per-node method was called, which only the loop around it knows."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        node = frame.f_locals.get("node") if frame.f_code in _LOOPS else None
        if isinstance(node, Node):
            return f" for node {node.name}"
    return ""


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
        shown = own_traceback(error)
        logging.getLogger(plugin.name).warning(
            "%s failed: %s%s",
            point,
            problem,
            repeated,
            exc_info=(type(error), error, shown) if shown else None,
        )
