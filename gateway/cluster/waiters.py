"""Waits for the cluster state, which is pure and tells nobody when it changes."""

import asyncio
from collections.abc import Callable

LOOK_AGAIN = 0.002
"""Seconds between two looks."""


async def until(condition: Callable[[], bool], end: float) -> bool:
    """Wait until *condition* holds; return whether it did before *end*, in `loop.time()`."""
    now = asyncio.get_running_loop().time
    while not (holds := condition()) and now() < end:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(LOOK_AGAIN)
    return holds
