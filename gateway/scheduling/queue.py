"""Cycles run one at a time, in the order of arrival."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

LONGEST_WAIT = 0.02
"""Seconds that `wait_until_idle` waits at most; otherwise back-to-back cycles starve the caller."""


class CycleQueue:
    """Gives each cycle its turn."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = 0

    @property
    def is_idle(self) -> bool:
        """Whether no cycle runs or waits."""
        return not self._lock.locked() and not self._waiting

    async def begin_turn(self) -> float:
        """Wait for the cycles before; return for how many seconds. Who has the turn must end it."""
        start = time.perf_counter()
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        return time.perf_counter() - start

    def end_turn(self) -> None:
        """Let the next cycle begin."""
        self._lock.release()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Have the turn inside the block."""
        await self.begin_turn()
        try:
            yield
        finally:
            self.end_turn()

    @asynccontextmanager
    async def between_cycles(self) -> AsyncIterator[None]:
        """Let no cycle run inside the block; cycles that were queued before it end first."""
        async with self._lock:
            yield

    async def wait_until_idle(self, longest: float = LONGEST_WAIT) -> None:
        """Wait until no cycle runs or waits, but at most *longest* seconds.

        What follows should take about a millisecond before it waits again.
        """
        await asyncio.sleep(0)  # lets requests that have arrived queue first
        with suppress(TimeoutError):
            async with asyncio.timeout(longest), self._lock:
                pass

    async def drain(self) -> None:
        """Wait for the cycles that were queued before."""
        async with self._lock:
            pass
