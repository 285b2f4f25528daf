"""Interrupts Python code that takes too long, in the thread that runs it.

Plugins are synchronous and share the event loop's thread, which keeps a cycle within microseconds
of a plain function call. An interval timer's signal breaks into an endless loop and into
`time.sleep` alike, and its traceback names the line. It fires again until the code gives up, should
that swallow the exception.
"""

import signal
import threading
from collections.abc import Coroutine, Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

REPEAT_SECONDS = 0.05


class BudgetExceededError(BaseException):
    """Time is up. A BaseException, so that a plugin's `except Exception` does not catch it."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise BudgetExceededError in the body once *seconds* have passed.

    Without effect outside the main thread, where Python runs no signal handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    armed = True

    def ring(_signal: int, _frame: FrameType | None) -> None:
        if armed:
            raise BudgetExceededError

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6), REPEAT_SECONDS)
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


class Stepwise:
    """Awaits a coroutine with an alarm around each of its steps, not around what it waits for."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], seconds: float) -> None:
        self._coroutine = coroutine
        self._seconds = seconds

    def __await__(self) -> Generator[Any, Any, Any]:
        step, value = self._coroutine.send, None
        while True:
            try:
                with alarm(self._seconds):
                    waits_for = step(value)  # type: ignore[arg-type]  # send or throw
            except StopIteration as stop:
                return stop.value
            try:
                value, step = (yield waits_for), self._coroutine.send
            except BaseException as error:  # noqa: BLE001 - handed on to the coroutine
                value, step = error, self._coroutine.throw  # type: ignore[assignment]
