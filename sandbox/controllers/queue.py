"""What has to be reconciled, each when its time has come."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

SETTLE_SECONDS = 0.1
"""Changes of an object within this time are handled together."""

FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 30.0

MOST_RETRIES = 10
"""Tries after a failure; then only another change brings the object back."""


class Key(NamedTuple):
    """An object that controllers look after."""

    kind: str
    namespace: str
    name: str


class WorkQueue:
    """Hands out keys one at a time; a key that waits already is not added twice.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._added = asyncio.Event()

    def add(self, key: Key, delay: float = SETTLE_SECONDS) -> None:
        """Have a key reconciled after a delay, or sooner if it is due sooner already."""
        due = self._clock() + delay
        self._due[key] = min(due, self._due.get(key, due))
        self._added.set()

    async def take(self) -> Key:
        """Wait for the next key that is due, and return it."""
        while True:
            self._added.clear()
            key = min(self._due, key=self._due.__getitem__, default=None)
            wait = None if key is None else self._due[key] - self._clock()
            if key is not None and wait is not None and wait <= 0:
                del self._due[key]
                return key
            try:
                async with asyncio.timeout(wait):
                    await self._added.wait()
            except TimeoutError:
                pass  # a key is due

    def succeeded(self, key: Key) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    def failed(self, key: Key) -> None:
        """Have a key tried again, later each time and not for ever."""
        count = self._failures.get(key, 0)
        if count >= MOST_RETRIES:
            return
        self._failures[key] = count + 1
        self.add(key, min(FIRST_RETRY_SECONDS * 2.0**count, LAST_RETRY_SECONDS))
