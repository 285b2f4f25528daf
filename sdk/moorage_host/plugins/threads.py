"""Finds threads that plugins leave behind and that keep the processor from everybody else.

Such a thread was often meant for one call, and nobody waits for it any more. Python has no safe way
to end a thread of somebody else's, so it is reported, with file and line.
"""

import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Final

from moorage.execution.enabled import EnabledPlugin

BUSY: Final = 0.9
"""The part of a processor that threads of a plugin, together, must take to be reported."""

LONGEST_SECONDS: Final = 60.0
"""How long on end they may take so much."""

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


class BusyThreads:
    """Looks at the threads of this process from time to time.

    Attributes:
        clock: A monotonic clock, in seconds.
        processor: Returns the processor time that a thread has taken, by its native id.
        problems: What is wrong now, by the names of the plugins whose threads never end.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[int], float] = processor_seconds,
    ) -> None:
        self.clock = clock
        self.processor = processor
        self.problems: Mapping[str, str] = {}
        self._looked = clock()
        self._taken: dict[int, float] = {}
        self._busy: dict[str, float] = {}

    def look(self, plugins: Iterable[EnabledPlugin]) -> None:
        """Look for busy threads in the code of one of *plugins*; to be called every second."""
        now = self.clock()
        passed = now - self._looked
        if passed < 1:
            return
        before, self._taken, self._looked = self._taken, {}, now
        frames, main, every = sys._current_frames(), threading.main_thread(), list(plugins)
        used: dict[str, float] = {}
        busiest: dict[str, tuple[float, FrameType]] = {}
        for thread in threading.enumerate():
            frame = frames.get(thread.ident or 0)
            if thread is main or frame is None or thread.native_id is None:
                continue
            taken = self._taken[thread.native_id] = self.processor(thread.native_id)
            share = (taken - before.get(thread.native_id, taken)) / passed
            if share > 0 and (name := _whose(frame, every)):
                used[name] = used.get(name, 0.0) + share
                busiest[name] = max(busiest.get(name, (0.0, frame)), (share, frame), key=_share)
        busy = {name: passed + self._busy.get(name, 0.0) for name in used if used[name] >= BUSY}
        found = {name: busiest[name][1] for name in busy if busy[name] >= LONGEST_SECONDS}
        self._busy, known = busy, self.problems
        self.problems = {name: _problem(frame) for name, frame in found.items()}
        for name in self.problems.keys() - known.keys():
            lines = "".join(traceback.format_list(traceback.extract_stack(found[name])[-5:]))
            log.error("Plugin %s left a thread that keeps the processor:\n%s", name, lines)


def _share(each: tuple[float, FrameType]) -> float:
    return each[0]


def _problem(frame: FrameType) -> str:
    place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
    return f"a thread keeps the processor for more than {LONGEST_SECONDS:g} s, at {place}"


def _whose(frame: FrameType | None, plugins: Iterable[EnabledPlugin]) -> str:
    """Return the plugin from whose module the innermost call is that is of any plugin's."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        for each in plugins:
            if type(each.plugin).__module__ == module:
                return each.name
        frame = frame.f_back
    return ""
