"""Ends threads that plugins leave behind and that keep the processor from everybody else.

Such a thread was often meant for one call, and nobody waits for it any more. An exception ends its
Python code. Where that helps nothing, the process ends, and begins again without the thread.
"""

import ctypes
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Final

from moorage.execution.enabled import EnabledPlugin

BUSY: Final = 0.25
"""The part of a processor that threads of a plugin, together, may take."""

LONGEST_SECONDS: Final = 20.0
"""How long on end they may take more."""

AGAIN_SECONDS: Final = 2.0
"""How long after an exception the next one is raised in them."""

MOST_TRIES: Final = 5
"""Exceptions that a plugin's threads may survive until the process ends."""

_TICK: Final = 1 / os.sysconf("SC_CLK_TCK")

log = logging.getLogger(__name__)


class LeftThreads:
    """Looks at the threads of this process from time to time.

    Attributes:
        longest: How long on end a plugin's threads may be busy, in seconds.
        busy: The part of a processor that counts as busy.
    """

    def __init__(self, longest: float = LONGEST_SECONDS, busy: float = BUSY) -> None:
        self.longest = longest
        self.busy = busy
        self._looked = time.monotonic()
        self._taken: dict[int, float] = {}
        self._busy: dict[str, float] = {}
        self._tries: dict[str, int] = {}

    def look(self, plugins: Iterable[EnabledPlugin]) -> None:
        """End busy threads whose code is that of one of *plugins*; to be called every second."""
        now = time.monotonic()
        passed = now - self._looked
        if passed < min(1.0, self.longest / 4):
            return
        before, self._taken, self._looked = self._taken, {}, now
        frames, main = sys._current_frames(), threading.main_thread()
        found: dict[str, tuple[EnabledPlugin, list[threading.Thread]]] = {}
        used: dict[str, float] = {}
        every = list(plugins)
        for thread in threading.enumerate():
            if thread is main or thread.ident not in frames or thread.native_id is None:
                continue
            taken = self._taken[thread.native_id] = _taken(thread.native_id)
            share = (taken - before.get(thread.native_id, taken)) / passed
            if share > 0 and (plugin := _whose(frames[thread.ident], every)):
                found.setdefault(plugin.name, (plugin, []))[1].append(thread)
                used[plugin.name] = used.get(plugin.name, 0.0) + share
        busy = {
            name: passed + self._busy.get(name, 0.0) for name in used if used[name] >= self.busy
        }
        self._tries = {name: self._tries[name] for name in self._tries if name in busy}
        for name in [name for name, seconds in busy.items() if seconds >= self.longest]:
            busy[name] = max(0.0, self.longest - AGAIN_SECONDS)
            self._end(*found[name], frames)
        self._busy = busy

    def _end(
        self,
        plugin: EnabledPlugin,
        threads: Iterable[threading.Thread],
        frames: dict[int, FrameType],
    ) -> None:
        tries = self._tries[plugin.name] = self._tries.get(plugin.name, 0) + 1
        for thread in threads:
            assert thread.ident is not None  # noqa: S101 - it runs
            stack = traceback.extract_stack(frames[thread.ident])
            plugin.overruns.ended_thread(f"{Path(stack[-1].filename).name}:{stack[-1].lineno}")
            lines = "".join(traceback.format_list(stack[-5:]))
            log.error(
                "Plugin %s left a thread that never ends; it is ended:\n%s", plugin.name, lines
            )
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )
        if tries > MOST_TRIES:
            time.sleep(0.1)  # so that the log is written
            os._exit(70)


def _taken(native_id: int) -> float:
    """Return the processor time that a thread has taken, in seconds."""
    try:
        stat = Path(f"/proc/self/task/{native_id}/stat").read_text()
    except OSError:  # it has just ended
        return 0.0
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) * _TICK


def _whose(frame: FrameType | None, plugins: Iterable[EnabledPlugin]) -> EnabledPlugin | None:
    """Return the plugin from whose module the innermost call is that is of any plugin's."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        for each in plugins:
            if type(each.plugin).__module__ == module:
                return each
        frame = frame.f_back
    return None
