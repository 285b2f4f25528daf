"""Ends threads that plugins leave behind and that keep the processor from everybody else.

Such a thread was often meant for one call, and nobody waits for it any more. An exception ends its
Python code. Where that helps nothing, it is only reported: the other replicas have it as well.
"""

import ctypes
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Final

from moorage.execution.alarm import BudgetExceededError
from moorage.execution.enabled import EnabledPlugin

BUSY: Final = 0.9
"""The part of a processor that threads of a plugin, together, must take to be ended."""

LONGEST_SECONDS: Final = 60.0
"""How long on end they may take so much."""

AGAIN_SECONDS: Final = 2.0
"""How long after an exception the next one is raised in them."""

MOST_TRIES: Final = 5
"""Exceptions that a thread may survive until it is given up."""

_TICK: Final = 1 / os.sysconf("SC_CLK_TCK")

log = logging.getLogger(__name__)


def processor_seconds(native_id: int) -> float:
    """Return the processor time that a thread of this process has taken, in seconds."""
    try:
        stat = Path(f"/proc/self/task/{native_id}/stat").read_text()
    except OSError:  # it has just ended
        return 0.0
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) * _TICK


class LeftThreads:
    """Looks at the threads of this process from time to time.

    Attributes:
        clock: A monotonic clock, in seconds.
        processor: Returns the processor time that a thread has taken, by its native id.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[int], float] = processor_seconds,
    ) -> None:
        self.clock = clock
        self.processor = processor
        self._looked = clock()
        self._taken: dict[int, float] = {}
        self._busy: dict[str, float] = {}
        self._tries: dict[threading.Thread, int] = {}
        self._given_up: dict[threading.Thread, str] = {}

    def look(self, plugins: Iterable[EnabledPlugin]) -> None:
        """End busy threads whose code is that of one of *plugins*; to be called every second."""
        now = self.clock()
        passed = now - self._looked
        if passed < 1:
            return
        before, self._taken, self._looked = self._taken, {}, now
        frames, main = sys._current_frames(), threading.main_thread()
        found: dict[str, tuple[EnabledPlugin, list[threading.Thread]]] = {}
        used: dict[str, float] = {}
        given_up, self._given_up = self._given_up, {}
        every = list(plugins)
        for thread in threading.enumerate():
            if thread is main or thread.ident not in frames or thread.native_id is None:
                continue
            taken = self._taken[thread.native_id] = self.processor(thread.native_id)
            share = (taken - before.get(thread.native_id, taken)) / passed
            if share <= 0 or not (plugin := _whose(frames[thread.ident], every)):
                continue
            if place := given_up.get(thread):
                self._given_up[thread] = place
                plugin.overruns.kept_thread(place)
                continue
            found.setdefault(plugin.name, (plugin, []))[1].append(thread)
            used[plugin.name] = used.get(plugin.name, 0.0) + share
        del frames  # so that it keeps nothing of theirs alive
        busy = {name: passed + self._busy.get(name, 0.0) for name in used if used[name] >= BUSY}
        tried, self._tries = self._tries, {}
        for name in busy:
            plugin, threads = found[name]
            self._tries |= {thread: tried[thread] for thread in threads if thread in tried}
            if busy[name] >= LONGEST_SECONDS:
                busy[name] = LONGEST_SECONDS - AGAIN_SECONDS
                for thread in threads:
                    self._end(plugin, thread)
        self._busy = busy

    def _end(self, plugin: EnabledPlugin, thread: threading.Thread) -> None:
        assert thread.ident is not None  # noqa: S101 - it runs
        frame = sys._current_frames().get(thread.ident)
        if frame is None:  # it has just ended
            return
        stack = traceback.extract_stack(frame)
        del frame
        place = f"{Path(stack[-1].filename).name}:{stack[-1].lineno}"
        lines = "".join(traceback.format_list(stack[-5:]))
        tries = self._tries[thread] = self._tries.get(thread, 0) + 1
        if tries > MOST_TRIES:
            self._given_up[thread] = place
            plugin.overruns.kept_thread(place)
            log.error(
                "Plugin %s left a thread that never ends and cannot be ended:\n%s",
                plugin.name,
                lines,
            )
        elif _raise_in(thread.ident, plugin):
            plugin.overruns.ended_thread(place)
            log.error(
                "Plugin %s left a thread that never ends; it gets an exception:\n%s",
                plugin.name,
                lines,
            )


def _raise_in(ident: int, plugin: EnabledPlugin) -> bool:
    """Raise an exception in a thread, and return whether it still was in the plugin's code.

    A worker of a pool may have left it a moment ago, and do somebody else's work.
    """
    set_exception, thread = ctypes.pythonapi.PyThreadState_SetAsyncExc, ctypes.c_ulong(ident)
    if not _whose(sys._current_frames().get(ident), [plugin]):
        return False
    set_exception(thread, ctypes.py_object(BudgetExceededError))
    if not _whose(sys._current_frames().get(ident), [plugin]):
        set_exception(thread, None)
    return True


def _whose(frame: FrameType | None, plugins: Iterable[EnabledPlugin]) -> EnabledPlugin | None:
    """Return the plugin from whose module the innermost call is that is of any plugin's."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        for each in plugins:
            if type(each.plugin).__module__ == module:
                return each
        frame = frame.f_back
    return None
