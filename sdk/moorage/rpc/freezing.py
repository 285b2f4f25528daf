"""Keeps the garbage collector's pauses short in processes that hold a large cluster; for each.

With 150,000 pods a full collection looks at a million objects that stay, and stops every cycle for
hundreds of milliseconds. So what survives a long one is frozen: it is freed as soon as nothing
refers to it, as ever, but is not searched for cycles until as much again has been frozen. Hence
garbage in cycles is at most as large as what is alive.
"""

import gc
import time
from collections.abc import Callable
from typing import Any

LONG_SECONDS = 0.01
"""A full collection that takes longer freezes what it leaves."""

FULL = 2

FULL_AFTER = 4
"""Collections of the second generation before a full one: of a frozen heap it looks at less."""


class Freezer:
    """Freezes what survives long full collections, from when it is made until `stop`."""

    def __init__(
        self, soon: Callable[[Callable[[], object]], object], longest: float = LONG_SECONDS
    ) -> None:
        """Freeze after full collections that take longer than *longest* seconds.

        Args:
            soon: Calls something outside of a collection; any thread may ask for it.
            longest: In seconds.
        """
        self._soon = soon
        self._longest = longest
        self._began = 0.0
        self._kept = self._frozen = 0
        self._looks_at_all = True
        self._begins_anew = False
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*self._thresholds[:2], FULL_AFTER)
        gc.callbacks.append(self._note)

    def stop(self) -> None:
        """Freeze nothing more, and have the collector look at everything again."""
        gc.callbacks.remove(self._note)
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] != FULL:
            return
        if phase == "start":
            self._began = time.perf_counter()
            return
        seconds = time.perf_counter() - self._began
        if self._began and seconds > self._longest and not self._begins_anew:
            self._freeze()

    def _freeze(self) -> None:
        # Whoever counts all that is frozen looks at it: that takes longer than most collections.
        self._frozen += len(gc.get_objects(generation=FULL))
        gc.freeze()
        if self._looks_at_all:
            self._kept = self._frozen
            self._looks_at_all = False
        elif self._frozen > 2 * self._kept:
            self._frozen = gc.get_freeze_count()  # without what has been freed since
            if self._frozen > 2 * self._kept:
                self._look_at_all()
                return
        self._soon(self._begin_anew)

    def _begin_anew(self) -> None:
        # The next full collection comes when a quarter of what the last one left has been added:
        # let that be a quarter of nothing, so that it has little to look at.
        self._begins_anew = True
        gc.collect()
        self._begins_anew = False

    def _look_at_all(self) -> None:
        # At once: it takes longest of all, and most come while the cluster is being read.
        gc.unfreeze()
        self._frozen, self._looks_at_all = 0, True
        self._soon(gc.collect)
