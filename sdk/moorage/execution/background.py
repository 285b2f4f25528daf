"""Runs what plugins do in the background: again after a failure, and until the plugin stops.

`Plugin.background` and `Plugin.poll` call this; `execution.enabled` starts and stops plugins.
"""

import asyncio
import inspect
import math
import time
from collections.abc import Callable
from typing import Any, Final

from moorage.backoff import Backoff
from moorage.execution.alarm import BudgetExceededError, Stepwise
from moorage.execution.failure import FAILURES, FailureLog, overrun_of, problem_of
from moorage.plugin.hooks import Plugin
from moorage.units.durations import format_duration

FIRST_WAIT: Final = 1.0
"""The longest wait after the first failure of a row, in seconds; it doubles with each failure."""

LONGEST_WAIT: Final = 60.0
"""The longest wait after many failures in a row, in seconds."""

STEADY_SECONDS: Final = 1.0
"""How long work must at least have run without a failure to end a row of failures, in seconds."""

SHOWN_SECONDS: Final = 120.0
"""How long after a failure it is shown, unless a later call went well."""

MAX_WORKS: Final = 100
"""How many works of one plugin may run at the same time."""


class Background:
    """The background work of one plugin.

    Attributes:
        on_failure: Called with the plugin's name whenever work fails.
        works: What runs, by its task.
    """

    def __init__(self, plugin: Plugin, *, step_seconds: float) -> None:
        """Run work of *plugin*, of which no step may take longer than *step_seconds*."""
        self.on_failure: Callable[[str], None] = lambda _: None
        self._plugin = plugin
        self._step_seconds = step_seconds
        self.works: dict[asyncio.Task[None], _Work] = {}

    @property
    def is_failing(self) -> bool:
        """Whether there is a problem; cheaper than it, for each call of the plugin."""
        return any(work.is_failing for work in self.works.values())

    @property
    def problem(self) -> str:
        """What fails, how often and since when; empty if nothing does."""
        return "; ".join(filter(None, (work.problem for work in self.works.values())))

    def begin(self, work: Callable[[], object], interval: float | None = None) -> None:
        """Run *work* from now on: until it returns, or every *interval* seconds.

        Raises:
            TypeError: It is no coroutine function; with an interval, no function at all.
            ValueError: The interval is not above 0.
            RuntimeError: Too many run already.
        """
        name, polled = self._plugin.name, interval is not None
        if not (callable(work) if polled else inspect.iscoroutinefunction(work)):
            raise TypeError(_advice(work, polled=polled))
        if interval is not None and not 0 < interval < math.inf:
            raise ValueError(f"{name} polls with the interval {interval}: it must be above 0")
        if len(self.works) >= MAX_WORKS:
            raise RuntimeError(f"{name} has {MAX_WORKS} functions in the background already")
        run = _Work(self._plugin, work, interval, self._step_seconds, self._count)
        task = asyncio.create_task(run(), name=f"{name}.{run.name}")
        self.works[task] = run
        task.add_done_callback(lambda task: self.works.pop(task, None))

    def _count(self) -> None:
        self.on_failure(self._plugin.name)

    async def end(self, seconds: float) -> None:
        """Cancel everything, and wait until it has ended, at most so long."""
        tasks = list(self.works)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)


def _advice(given: object, *, polled: bool) -> str:
    if inspect.iscoroutine(given):
        given.close()  # otherwise Python warns that nobody awaited it
        call = "self.poll(self._poll, interval)" if polled else "self.background(self._poll)"
        return f"background work is not called, but named: {call}"
    kind = "a function" if polled else "an async function"
    return f"background work must be {kind}, such as self._poll, not {given!r}"


class _Work:
    """One function that runs in the background: until it returns, or with an interval for ever."""

    def __init__(
        self,
        plugin: Plugin,
        work: Callable[[], object],
        interval: float | None,
        step_seconds: float,
        on_failure: Callable[[], None],
    ) -> None:
        self.name = getattr(work, "__name__", type(work).__name__)
        self._plugin = plugin
        self._work = work
        self._interval = interval
        self._step_seconds = step_seconds
        self._on_failure = on_failure
        self._log = FailureLog()
        longest = min(LONGEST_WAIT, interval or LONGEST_WAIT)
        self._backoff = Backoff(min(FIRST_WAIT, longest), longest)
        self._failures = 0
        self._failed_at = 0.0
        self._latest = ""

    @property
    def is_failing(self) -> bool:
        """Whether it has failed recently, and has not gone well since."""
        return self._failures > 0 and time.monotonic() - self._failed_at <= SHOWN_SECONDS

    @property
    def problem(self) -> str:
        """How often it has failed recently, and how; empty if it has not."""
        if not self.is_failing:
            return ""
        ago = time.monotonic() - self._failed_at
        times = "once" if self._failures == 1 else f"{self._failures} times"
        return f"{self.name} failed {times}, {format_duration(round(ago))} ago: {self._latest}"

    async def __call__(self) -> None:
        """Run the work until it returns, or every interval, however often it fails."""
        waited = 0.0
        while True:
            began = time.monotonic()
            try:
                await Stepwise(self._call(), self._step_seconds)
            except FAILURES as error:
                if time.monotonic() - began > max(waited, STEADY_SECONDS):
                    self._end_row()
                self._note(error)
                waited = self._backoff.next()
            else:
                if self._interval is None:
                    return
                self._end_row()
                waited = self._interval
            await asyncio.sleep(waited)

    async def _call(self) -> None:
        result: Any = self._work()
        if inspect.isawaitable(result):
            await result

    def _end_row(self) -> None:
        self._failures = 0
        self._backoff.reset()

    def _note(self, error: BaseException) -> None:
        self._failures += 1
        self._failed_at = time.monotonic()
        if isinstance(error, BudgetExceededError):
            overrun = overrun_of(error, self._plugin, self._step_seconds)
            self._latest = f"{overrun}; await asyncio.to_thread(...) for what waits or computes"
        else:
            self._latest = problem_of(error, self._plugin)
        self._log.write(self._plugin, self.name, self._latest, error)
        self._on_failure()
