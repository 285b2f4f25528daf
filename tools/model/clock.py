"""An event loop whose time passes only while nothing else is left to do.

So a run is the same each time, whatever the machine is busy with, and waiting costs nothing.
"""

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest import mock

Result = TypeVar("Result")

TICK = 0.001
"""What passes between two runs: what happens in a later one is later."""


class _Selector(selectors.DefaultSelector):
    """Lets time pass instead of waiting."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everything waits, and nothing would end that")
        self.loop.now += max(timeout, 0.0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop.

    Attributes:
        now: Its time, which `time.monotonic` returns as well inside of `run`.
    """

    def __init__(self) -> None:
        self.now = 1000.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        """Return the time."""
        return self.now

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return what *work* returns."""
        self.now += TICK
        with mock.patch.object(time, "monotonic", self.time):
            return self.run_until_complete(work)
