"""A few at a time, a few that wait, and the rest is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    """Bounds how much of some work goes on, and how much waits for that.

    Attributes:
        running: How many have a slot at a time, at most.
        waiting: How many wait for one now.
    """

    def __init__(self, running: int, waiting: int) -> None:
        """Give so many slots; let so many others wait."""
        self.running = running
        self.waiting = 0
        self._most_waiting = waiting
        self._free = asyncio.Semaphore(running)

    @property
    def is_full(self) -> bool:
        """Whether whoever comes now has to be refused."""
        return self._free.locked() and self.waiting >= self._most_waiting

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot, which is free again after the block; look at `is_full` before."""
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._free.release()
