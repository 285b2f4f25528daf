"""Runs what plugins do in the background: again after a failure, and until the plugin stops.

`Plugin.background` calls this; services and tests start and stop plugins by `lifetime`.
"""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Final

from moorage.backoff import Backoff
from moorage.execution.alarm import BudgetExceededError, Stepwise
from moorage.execution.failure import FAILURES, overrun_of, problem_of
from moorage.execution.failure_log import FailureLog
from moorage.plugin.base import Plugin, Work
from moorage.units.durations import format_duration

FIRST_WAIT: Final = 1.0
"""The longest wait after the first failure, in seconds; it doubles with each in a row."""

LONGEST_WAIT: Final = 60.0
"""The longest wait after many failures, in seconds."""

STEADY_SECONDS: Final = 60.0
"""How long work must have run since its last failure to count as well again."""

MAX_WORKS: Final = 100
"""How many works of one plugin may run at the same time."""


class Background:
    """The background work of one plugin.

    Attributes:
        on_failure: Called with the plugin's name whenever work fails.
    """

    def __init__(self, plugin: Plugin, *, step_seconds: float) -> None:
        """Run work of *plugin*, of which no step may take longer than *step_seconds*."""
        self.on_failure: Callable[[str], None] = lambda _: None
        self._plugin = plugin
        self._step_seconds = step_seconds
        self._works: dict[asyncio.Task[None], _Work] = {}

    @property
    def problem(self) -> str:
        """What fails, how often and since when; empty if nothing does."""
        return "; ".join(filter(None, (work.problem for work in self._works.values())))

    def begin(self, work: Work) -> None:
        """Run *work* from now on.

        Raises:
            TypeError: It is no coroutine function.
            RuntimeError: Too many run already.
        """
        name = self._plugin.name
        if not inspect.iscoroutinefunction(work):
            raise TypeError(_advice(work))
        if len(self._works) >= MAX_WORKS:
            raise RuntimeError(f"{name} has {MAX_WORKS} functions in the background already")
        run = _Work(self._plugin, work, self._step_seconds, lambda: self.on_failure(name))
        task = asyncio.create_task(run(), name=f"{name}.{run.name}")
        self._works[task] = run
        task.add_done_callback(lambda task: self._works.pop(task, None))

    async def end(self, seconds: float) -> None:
        """Cancel everything, and wait until it has ended, at most so long."""
        tasks = list(self._works)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)


def _advice(given: object) -> str:
    if inspect.iscoroutine(given):
        given.close()  # otherwise Python warns that nobody awaited it
        return "background work is not called, but named: self.background(self._poll)"
    return f"background work must be an async function, such as self._poll, not {given!r}"


class _Work:
    """One function that runs in the background."""

    def __init__(
        self, plugin: Plugin, work: Work, step_seconds: float, on_failure: Callable[[], None]
    ) -> None:
        self.name = getattr(work, "__name__", type(work).__name__)
        self._plugin = plugin
        self._work = work
        self._step_seconds = step_seconds
        self._on_failure = on_failure
        self._log = FailureLog()
        self._failures = 0
        self._failed_at = 0.0
        self._latest = ""

    @property
    def problem(self) -> str:
        """How often it has failed recently, and how; empty if it has not."""
        ago = time.monotonic() - self._failed_at
        if not self._failures or ago > STEADY_SECONDS + LONGEST_WAIT:
            return ""
        times = "once" if self._failures == 1 else f"{self._failures} times"
        return f"{self.name} failed {times}, {format_duration(round(ago))} ago: {self._latest}"

    async def __call__(self) -> None:
        """Run the work until it returns, however often it fails."""
        backoff = Backoff(FIRST_WAIT, LONGEST_WAIT)
        while True:
            began = time.monotonic()
            try:
                await Stepwise(self._work(), self._step_seconds)
            except FAILURES as error:
                if time.monotonic() - began > STEADY_SECONDS:
                    self._failures = 0
                    backoff.reset()
                self._note(error)
            else:
                return
            await asyncio.sleep(backoff.next())

    def _note(self, error: BaseException) -> None:
        self._failures += 1
        self._failed_at = time.monotonic()
        if isinstance(error, BudgetExceededError):
            self._latest = overrun_of(error, self._plugin, self._step_seconds)
        else:
            self._latest = problem_of(error, self._plugin)
        self._log.write(self._plugin, self.name, self._latest, error)
        self._on_failure()
