"""A test that overruns its limit fails where it waits, or else ends its process.

At the limit a signal interrupts the test: an exception in what it waits for, or in the coroutine
that does. The engines' time budgets need SIGALRM, so it is another one. If the test has not ended
soon, a thread writes the stacks of all threads and tasks, and ends the process. Where Python does
not run any more, as in C code that keeps the interpreter's lock, faulthandler does that. What a
worker of pytest-xdist has written comes into the report of the test through `tests.workers`.
"""

import asyncio
import faulthandler
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import pytest
from pytest_timeout import Settings, is_debugging

from tests.processes import kill_children

FOLDER = "moorage_stacks"
"""The key of a worker's input: the folder in which each worker has a file for stacks."""

GRACE = 0.25
"""The part of its limit that a test has to end once it is interrupted, and then each other way."""

WRITING_SECONDS = 4
"""What it has besides: to write a failure takes as long under a short limit as under a long one."""

MOST_LINES = 30
"""The innermost calls of a stack, and the last lines that a test has printed, in the report."""


def pytest_configure(config: pytest.Config) -> None:
    """Limit the tests of this process, if it runs any."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is not None:
        stacks = Path(worker[FOLDER], worker["workerid"]).open("w")  # noqa: SIM115
        faulthandler.enable(stacks)
        faulthandler.register(signal.SIGUSR1, stacks)
    elif config.getoption("dist", "no") == "no":
        stacks = os.fdopen(os.dup(2), "w")
    else:
        return
    config.pluginmanager.register(Limits(config, stacks))


class Limits:
    """The limit of the test that runs in this process."""

    def __init__(self, config: pytest.Config, stacks: TextIO) -> None:
        self._config = config
        self._stacks = stacks
        self._timers: list[threading.Timer] = []
        self._running = ""
        self._is_torn_down = False
        signal.signal(signal.SIGUSR2, self._interrupt)

    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Settings) -> bool:
        """Begin to count, in the place of pytest-timeout."""
        self._running = f"{item.nodeid} overran its limit of {settings.timeout:g} s"
        self._is_torn_down = False
        main = threading.main_thread().ident
        self._timers = [
            threading.Timer(settings.timeout, signal.pthread_kill, (main, signal.SIGUSR2)),
            threading.Timer(settings.timeout * (1 + GRACE) + WRITING_SECONDS, self._end),
        ]
        for timer in self._timers:
            timer.daemon = True
            timer.start()
        last = settings.timeout * (1 + 2 * GRACE) + 2 * WRITING_SECONDS
        faulthandler.dump_traceback_later(last, exit=True, file=self._stacks)
        with suppress(OSError):  # stderr may be no file
            os.utime(self._stacks.fileno(), times=(0, time.time() + last))
        return True

    def pytest_timeout_cancel_timer(self) -> bool:
        """Count on, also while a test that failed is torn down: pytest-timeout would stop here."""
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Count no longer once a test has ended."""
        result = yield
        faulthandler.cancel_dump_traceback_later()
        for timer in self._timers:
            timer.cancel()
            timer.join(20)
        self._timers = []
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self) -> None:
        """Cancel no task from here on: pytest would leave other fixtures as they are."""
        self._is_torn_down = True

    def _interrupt(self, _: int, frame: FrameType | None) -> None:
        """Raise in what the test waits for, or in the task that the event loop runs for it."""
        if is_debugging() or not self._timers:  # type: ignore[no-untyped-call]
            return
        while frame is not None:
            if frame.f_code is asyncio.Runner.run.__code__:
                task: asyncio.Task[object] = frame.f_locals["task"]
                if not self._is_torn_down:
                    task.get_loop().call_soon_threadsafe(task.cancel, self._running)
                return
            frame = frame.f_back
        pytest.fail(self._running)

    def _end(self) -> None:
        if is_debugging():  # type: ignore[no-untyped-call]
            return
        try:
            print(f"\n{self._running}, and did not end", file=self._stacks)
            for title, lines in (*_threads(), *_tasks(), *self._captured()):
                shown = "\n".join(line.rstrip() for line in lines[-MOST_LINES:])
                print(f"--- {title}\n{shown}", file=self._stacks)
            self._stacks.flush()
        finally:
            kill_children()
            os._exit(1)

    def _captured(self) -> Iterator[tuple[str, list[str]]]:
        manager = self._config.pluginmanager.getplugin("capturemanager")
        if manager is not None:
            manager.suspend_global_capture(in_=True)
            for name, text in zip(("stdout", "stderr"), manager.read_global_capture(), strict=True):
                if text:
                    yield f"captured {name}", text.splitlines()


def _threads() -> Iterator[tuple[str, list[str]]]:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident != threading.get_ident():
            yield f"thread {names.get(ident, ident)}", traceback.format_stack(frame)


def _tasks() -> Iterator[tuple[str, list[str]]]:
    """Yield what each task of asyncio awaits, the innermost last."""
    for each in gc.get_objects():
        if issubclass(type(each), asyncio.Task) and not each.done():
            yield f"task {each.get_name()}", list(_awaited(each.get_coro()))


def _awaited(awaits: object) -> Iterator[str]:
    """Yield the place in each coroutine and generator of a chain."""
    while awaits is not None:
        frame, following = None, None
        for prefix, name in (("cr", "await"), ("gi", "yieldfrom"), ("ag", "await")):
            frame = frame or getattr(awaits, f"{prefix}_frame", None)
            following = following or getattr(awaits, f"{prefix}_{name}", None)
        if isinstance(frame, FrameType):
            yield from traceback.format_list(
                traceback.StackSummary.extract([(frame, frame.f_lineno)])
            )
        awaits = following
