"""A few at a time, a few that wait, and the rest is refused."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

SLOW_REFUSALS = 32
"""How many that are refused wait for that side by side; more are refused at once."""


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
        self._refusals = 0
        self._free = asyncio.Semaphore(running)

    @property
    def is_full(self) -> bool:
        """Whether whoever comes now has to be refused."""
        return self._free.locked() and self.waiting >= self._most_waiting

    async def slow_down(self, seconds: float) -> None:
        """Let whoever is refused wait for so long before, as most try again at once."""
        if self._refusals >= SLOW_REFUSALS:
            return
        self._refusals += 1
        try:
            await asyncio.sleep(seconds)
        finally:
            self._refusals -= 1

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


class FairSlots:
    """Gives slots by turns among those who ask, so that one of them cannot keep the others waiting.

    Attributes:
        free: How many slots nobody has.
    """

    def __init__(self, running: int, *, waiting_each: int, waiting_askers: int) -> None:
        """Give so many slots; let each of so many askers wait for some."""
        self.free = running
        self._each = waiting_each
        self._askers = waiting_askers
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    def is_full(self, asker: str) -> bool:
        """Whether *asker* has to be refused now."""
        waiting = self._waiting.get(asker)
        if waiting is None:
            return not self.free and len(self._waiting) >= self._askers
        return len(waiting) >= self._each

    @asynccontextmanager
    async def slot(self, asker: str) -> AsyncIterator[None]:
        """Wait for a slot, which is free again after the block; ask `is_full` before."""
        if self.free:
            self.free -= 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(asker, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # it has come in the same moment
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._waiting:
            asker, waiting = self._waiting.popitem(last=False)
            turn = waiting.popleft()
            if waiting:
                self._waiting[asker] = waiting
            if not turn.done():
                turn.set_result(None)
                return
        self.free += 1
