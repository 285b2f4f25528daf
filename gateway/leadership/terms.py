"""Begins one term after the other, as long as this process may.

Without an election that is always so: a term begins when the process starts, and again when a call
comes after a binder has seen the epoch of another gateway. So gateways that are called in turn
fence each other, and stay right. With an election it is so while this process holds the Lease.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress

from gateway.leadership.beginning import Beginning
from gateway.leadership.term import Term

SETTLING = "the binders settle what earlier gateways asked for"


async def _keep(epoch: int) -> None:
    del epoch


class Terms:
    """Begins a term whenever one is needed."""

    def __init__(self, term: Term, beginning: Beginning, *, interval: float) -> None:
        """Look for new binders every *interval* seconds."""
        self._term = term
        self._beginning = beginning
        self._interval = interval

    async def run(
        self,
        epoch: int = 0,
        valid_until: Callable[[], float] = lambda: math.inf,
        keep: Callable[[int], Awaitable[None]] = _keep,
    ) -> None:
        """Begin terms until cancelled.

        Args:
            epoch: The epoch of the first term; one more than the last without.
            valid_until: Returns when, on the monotonic clock, this process may decide no more.
            keep: Stores an epoch that is higher than that of the call, before it is used.
        """
        while True:
            epoch = max(epoch, self._term.epoch + 1)
            self._term.await_beginning(SETTLING)
            while (highest := await self._beginning.begin(epoch, valid_until)) != epoch:
                await keep(highest)
                epoch = highest
            await self._until_ended()
            await self._term.wanted.wait()

    async def _until_ended(self) -> None:
        while not self._term.ended.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._term.ended.wait()
            if not self._term.ended.is_set():
                await self._beginning.fence_others()
