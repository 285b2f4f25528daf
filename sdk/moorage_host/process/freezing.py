"""Keeps the garbage collector's pauses short in processes that hold a large cluster; for each.

A full collection of all that a gateway holds for 5,000 nodes takes 0.15 s. So what survives a long
one is frozen: it is freed as soon as nothing refers to it, as ever, but is not searched for cycles
until twice as much is frozen as after the last such search, and `SPARE` objects more at the least.
That takes a second for a million objects, and should never happen: pods and most of what is kept
for each of them are no objects to the collector (`gc=False`). It takes a plugin that keeps so many
objects of its own, or a leak: for garbage in cycles is freed by nothing else once it was frozen.
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

SPARE = 500_000
"""Frozen objects that may be garbage in cycles, with a heap of no more: some 50 to 100 MB."""


class Freezer:
    """Freezes what survives long full collections, from when it is made until `stop`."""

    def __init__(
        self,
        soon: Callable[[Callable[[], object]], object],
        *,
        longest: float = LONG_SECONDS,
        spare: int = SPARE,
    ) -> None:
        """Freeze after full collections that take longer than *longest* seconds.

        Args:
            soon: Calls something outside of a collection; any thread may ask for it.
            longest: In seconds.
            spare: Objects that may be frozen on top of those that were last found alive, or as many
                again as were if that is more.
        """
        self._soon = soon
        self._longest = longest
        self._spare = self._most = spare
        self._began = 0.0
        self._frozen = 0
        self._ours = self._is_asked = False
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
        if self._began and seconds > self._longest and not self._ours:
            self._freeze()

    def _freeze(self) -> None:
        # Whoever counts all that is frozen looks at it: that takes longer than most collections.
        self._frozen += len(gc.get_objects(generation=FULL))
        gc.freeze()
        if self._is_asked:  # whoever does much without a pause freezes many times before it is soon
            return
        self._is_asked = True
        if self._frozen > self._most:
            self._frozen = gc.get_freeze_count()  # without what has been freed since
        self._soon(self._look_at_all if self._frozen > self._most else self._begin_anew)

    def _begin_anew(self) -> None:
        self._is_asked = False
        self._collect()

    def _look_at_all(self) -> None:
        self._is_asked = False
        gc.unfreeze()
        self._collect()
        gc.freeze()
        self._frozen = gc.get_freeze_count()
        # Twice, or a heap that grows to millions of objects would be searched again and again.
        self._most = self._frozen + max(self._frozen, self._spare)
        self._collect()

    def _collect(self) -> None:
        # The next full collection comes when a quarter of what the last one left has been added.
        # After freezing, this makes it a quarter of nothing: then it has little to look at.
        self._ours = True
        gc.collect()
        self._ours = False
