"""Interrupts Python code that takes too long, in the thread that runs it.

Plugins are synchronous and share the event loop's thread, which keeps a cycle within microseconds
of a plain function call. An interval timer's signal breaks into an endless loop and into
`time.sleep` alike, and its traceback names the line. It fires again until the code gives up, should
that swallow the exception.
"""

import signal
import threading

# What `signal.getsignal` wraps: that tries to make an enum of the handler, and takes longer than
# many a plugin.
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Callable, Coroutine, Generator
from types import FrameType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

REPEAT_SECONDS = 0.05

_MAIN_THREAD = threading.main_thread().ident


class BudgetExceededError(BaseException):
    """Time is up. A BaseException, so that a plugin's `except Exception` does not catch it."""


def call_within(seconds: float, function: Callable[..., T], *args: Any) -> T:
    """Call *function*, and raise BudgetExceededError in it once *seconds* have passed.

    Without limit outside the main thread, where Python runs no signal handlers.
    """
    if threading.get_ident() != _MAIN_THREAD:
        return function(*args)
    if getsignal(signal.SIGALRM) is not _ring:
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
    """Awaits a coroutine with an alarm around each of its steps, not around what it waits for.

    The first step is taken at once. Often it is the only one: then there is nothing to wait for.

    Attributes:
        done: Whether the coroutine has returned *result*.
    """

    result: T

    def __init__(self, coroutine: Coroutine[Any, Any, T], seconds: float) -> None:
        self.done = False
        self._coroutine = coroutine
        self._seconds = seconds
        self._waits_for: Any = None
        self._take(coroutine.send, None)

    def __await__(self) -> Generator[Any, Any, T]:
        while not self.done:
            step: Callable[[Any], Any] = self._coroutine.send
            try:
                value = yield self._waits_for
            except BaseException as error:  # noqa: BLE001 - handed on to the coroutine
                value, step = error, self._coroutine.throw
            self._take(step, value)
        return self.result

    def _take(self, step: Callable[[Any], Any], value: Any) -> None:
        try:
            self._waits_for = call_within(self._seconds, step, value)
        except StopIteration as stop:
            self.done, self.result = True, stop.value
