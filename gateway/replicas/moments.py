"""Finds moments for work that cycles must not wait for, such as a snapshot for a new replica."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress

BetweenCycles = Callable[[], AbstractAsyncContextManager[None]]
"""A block in which no cycle runs; those that have come before end first."""

LONGEST = 0.02
"""Seconds that such work waits, lest it never ends where one cycle follows another."""


async def quiet_moment(between_cycles: BetweenCycles, longest: float = LONGEST) -> None:
    """Wait until no cycle runs or waits, but at most *longest* seconds.

    Whatever follows should take about a millisecond before it waits again.
    """
    await asyncio.sleep(0)  # so that what has come by now is seen
    with suppress(TimeoutError):
        async with asyncio.timeout(longest), between_cycles():
            pass
