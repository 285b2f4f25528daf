"""Scheduling cycles run one at a time, in the order of arrival."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

LONGEST_WAIT = 0.02
"""Seconds that `wait_until_idle` waits at most; otherwise back-to-back cycles starve the caller."""


class CycleQueue:
    """Gives each cycle its turn."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = Waiting()

    @property
    def is_idle(self) -> bool:
        """Whether no cycle runs or waits."""
        return not self._lock.locked() and not self._waiting.count

    def turn(self) -> "Turn":
        """Return the next turn; entering it waits for the cycles before."""
        return Turn(self._lock, self._waiting)

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


@dataclass(slots=True)
class Waiting:
    """How many cycles wait for their turn."""

    count: int = 0


class Turn:
    """The turn of one cycle; it may outlast the block, see `extend_until`."""

    def __init__(self, lock: asyncio.Lock, waiting: Waiting) -> None:
        self._lock = lock
        self._waiting = waiting
        self._last: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> "Turn":
        self._waiting.count += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting.count -= 1
        return self

    async def __aexit__(
        self,
        _: type[BaseException] | None,
        __: BaseException | None,
        ___: TracebackType | None,
    ) -> None:
        if self._last is None:
            self._lock.release()
        else:
            self._last.add_done_callback(lambda _: self._lock.release())

    def extend_until(self, task: "asyncio.Task[Any]") -> None:
        """Let no other cycle begin before *task* has ended."""
        self._last = task
