"""Spreads the work of calls by hand, so that the sessions of gateways hardly notice it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")

STEP_SECONDS = 0.001
"""How long a step should take; a plugin that needs long for one node takes longer."""

REST = 4.0
"""The pause after a step, as a multiple of what it took: calls by hand get a fifth of the time."""

LONGEST_REST = 0.05
"""In seconds. A step may have waited for something, at no cost to others."""


class Pace:
    """Runs one step at a time, whichever call it is of, and pauses after it."""

    def __init__(self) -> None:
        self._step = asyncio.Lock()

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """Take a step inside the block: a millisecond's work."""
        async with self._step:
            start = time.thread_time()  # a busy machine makes nobody wait longer
            try:
                yield
            finally:
                rest = REST * (time.thread_time() - start)
            await asyncio.sleep(min(rest, LONGEST_REST))

    async def each(self, items: Iterable[T], work: Callable[[T], object]) -> None:
        """Do the work on each of the items, in steps."""
        remaining, is_over = iter(items), False
        while not is_over:
            async with self.step():
                end = time.thread_time() + STEP_SECONDS
                is_over = True
                for item in remaining:
                    work(item)
                    if time.thread_time() >= end:
                        is_over = False
                        break
