"""Interrupts Python code that takes too long, in the thread that runs it.

Plugins are synchronous and share the event loop's thread, which keeps a cycle within microseconds
of a plain function call. An interval timer's signal breaks into an endless loop and into
`time.sleep` alike, and its traceback names the line. It fires again until the code gives up, should
that swallow the exception.
"""

import inspect
import signal
import threading
from collections.abc import Callable, Coroutine, Generator
from types import FrameType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

REPEAT_SECONDS = 0.05

# What signal.getsignal wraps: that tries to make an enum of the handler, and takes longer than many
# a plugin.
_getsignal = inspect.unwrap(signal.getsignal)


class BudgetExceededError(BaseException):
    """Time is up. A BaseException, so that a plugin's `except Exception` does not catch it."""


def call_within(seconds: float, function: Callable[..., T], *args: Any) -> T:
    """Call *function*, and raise BudgetExceededError in it once *seconds* have passed.

    Without limit outside the main thread, where Python runs no signal handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    if _getsignal(signal.SIGALRM) is not _ring:
        signal.signal(signal.SIGALRM, _ring)  # for good: each change is a system call
    armed = True
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6), REPEAT_SECONDS)
            return function(*args)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            armed = False
    finally:
        if armed:  # it went off on the very way to the line that disarms it
            signal.setitimer(signal.ITIMER_REAL, 0)


def _ring(_signal: int, _frame: FrameType | None) -> None:
    raise BudgetExceededError


class Stepwise(Generic[T]):
    """Awaits a coroutine with an alarm around each of its steps, not around what it waits for."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], seconds: float) -> None:
        self._coroutine = coroutine
        self._seconds = seconds

    def __await__(self) -> Generator[Any, Any, T]:
        step: Callable[[Any], Any] = self._coroutine.send
        value: Any = None
        while True:
            try:
                waits_for = call_within(self._seconds, step, value)
            except StopIteration as stop:
                result: T = stop.value
                return result
            try:
                value, step = (yield waits_for), self._coroutine.send
            except BaseException as error:  # noqa: BLE001 - handed on to the coroutine
                value, step = error, self._coroutine.throw
