"""Interrupts Python code that takes too long, in the thread that runs it.

Plugins are synchronous and share the event loop's thread, which keeps a cycle within microseconds
of a plain function call. An interval timer's signal breaks into an endless loop and into
`time.sleep` alike, and its traceback names the line. It fires again until the code gives up, should
that swallow the exception.
"""

import atexit
import math
import os
import signal
import threading
import time

# What `signal.getsignal` wraps: that tries to make an enum of the handler, and takes longer than
# many a plugin.
from _signal import getsignal, pthread_sigmask  # type: ignore[import-not-found]
from collections.abc import Callable, Coroutine, Generator
from types import FrameType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

REPEAT_SECONDS = 0.05

NOTICE_SECONDS = 1.0
"""How late a signal is noticed that neither Python's main thread nor `_take_signal` takes."""

_NEVER = math.inf
_MAIN_THREAD = threading.main_thread().ident


class BudgetExceededError(BaseException):
    """Time is up. A BaseException, so that a plugin's `except Exception` does not catch it."""


class _Alarm:
    """The timer of the process: most calls find that it is set already, to an earlier time.

    It rings once in a while when nobody's time is up, and is then set to the time when it is. Code
    that stops it and puts the handler back may so run unguarded until that time.

    Attributes:
        limit: When the time of the call under way is up; infinite if there is none.
        rings_at: When the timer rings; infinite if it is not set.
        handler: What handles its signal.
    """

    def __init__(self) -> None:
        self.limit = _NEVER
        self.rings_at = _NEVER
        self.handler = self._ring
        self._has_thread = False
        # Python gives up its handlers before it ends, and then the signal would kill the process.
        atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
        os.register_at_fork(after_in_child=self._forget)  # timers are not inherited

    def _forget(self) -> None:
        self.rings_at = _NEVER

    def take_handler(self) -> None:
        """Handle the signal from here on; who took the handler may have set the timer as well."""
        signal.signal(signal.SIGALRM, self.handler)  # for good: each is a system call
        self.rings_at = _NEVER
        if not self._has_thread:
            self._has_thread = True
            threading.Thread(target=_take_signal, name="alarm", daemon=True).start()

    def _ring(self, _signal: int, _frame: FrameType | None) -> None:
        left = self.limit - time.perf_counter()
        if left <= 0:
            raise BudgetExceededError
        self.set(left)

    def set(self, seconds: float) -> None:
        """Ring at `limit`, which is in so many seconds."""
        self.rings_at = self.limit
        if seconds == _NEVER:
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGALRM,))  # plugins may have blocked it
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6), REPEAT_SECONDS)


def _take_signal() -> None:
    """Take the signal where the main thread blocks it: Python runs the handler there all the same.

    A plugin that blocks signals and never ends would keep its replica from everybody else. The
    kernel may give the signal to a thread of C code instead, of numpy or gRPC. Up to Python 3.12
    the main thread hears of that only when another thread asks for its turn.
    """
    pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGALRM,))
    while True:
        time.sleep(NOTICE_SECONDS)


_alarm = _Alarm()


def call_within(seconds: float, function: Callable[..., T], *args: Any) -> T:
    """Call *function*, and raise BudgetExceededError in it once *seconds* have passed.

    Without limit outside the main thread, where Python runs no signal handlers.
    """
    if threading.get_ident() != _MAIN_THREAD:
        return function(*args)
    try:
        try:
            # Nearly always the timer rings early enough already: then this costs no system call.
            now = time.perf_counter()
            if getsignal(signal.SIGALRM) is not _alarm.handler:
                _alarm.take_handler()
            _alarm.limit = limit = now + seconds
            if not now < _alarm.rings_at <= limit:
                _alarm.set(seconds)
            return function(*args)
        finally:
            _alarm.limit = _NEVER
    finally:
        _alarm.limit = _NEVER  # again, because it may have rung on the very way to the line above


def is_pending() -> bool:
    """Return whether a call is under way that would be interrupted."""
    return _alarm.limit != _NEVER


class Stepwise(Generic[T]):
    """Awaits a coroutine with an alarm around each of its steps, not around what it waits for.

    The first step is taken at once. Often it is the only one: then there is nothing to wait for.

    Attributes:
        done: Whether the coroutine has returned *result*.
        thrown: What was last thrown into it from outside, such as a cancellation.
    """

    result: T
    thrown: BaseException | None = None

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
                self.thrown = value = error
                step = self._coroutine.throw
            self._take(step, value)
        return self.result

    def _take(self, step: Callable[[Any], Any], value: Any) -> None:
        try:
            self._waits_for = call_within(self._seconds, step, value)
        except StopIteration as stop:
            self.done, self.result = True, stop.value
