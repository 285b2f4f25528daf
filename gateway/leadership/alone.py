"""Terms without an election: for one gateway, or where kube-scheduler's election decides.

A term begins when the process starts, and again when a call comes after a binder has seen the epoch
of another gateway. So gateways that are called in turn fence each other, and stay right.
"""

import asyncio
import math
from contextlib import suppress

from gateway.leadership.beginning import Beginning
from gateway.leadership.term import Term


class Alone:
    """Begins a term whenever one is needed."""

    def __init__(self, term: Term, beginning: Beginning, *, interval: float) -> None:
        """Look for new binders every *interval* seconds."""
        self._term = term
        self._beginning = beginning
        self._interval = interval

    async def run(self) -> None:
        """Begin terms until cancelled."""
        while True:
            await self._begin()
            while not self._term.ended.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._interval):
                        await self._term.ended.wait()
                if not self._term.ended.is_set():
                    await self._beginning.fence_others()
            await self._term.wanted.wait()

    async def _begin(self) -> None:
        epoch = self._term.epoch + 1
        self._term.problem = "the binders settle what earlier gateways asked for"
        while (highest := await self._beginning.begin(epoch, math.inf)) != epoch:
            epoch = highest
