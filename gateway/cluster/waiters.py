"""Waits for changes of the cluster state."""

import asyncio
from collections.abc import Callable

from gateway.cluster.state import ClusterState


async def wait_a_while(
    state: ClusterState, condition: Callable[[], bool], seconds: float, end: float
) -> bool:
    """Do what `wait_for` does, for so many seconds at most, and not after *end*."""
    now = asyncio.get_running_loop().time()
    return await wait_for(state, condition, min(now + seconds, end))


async def wait_for(state: ClusterState, condition: Callable[[], bool], end: float) -> bool:
    """Wait until *condition* holds, which only a change of *state* can bring about; return whether.

    It is checked at once, and after changes, until *end* in `loop.time()`.
    """
    changed = asyncio.Event()
    state.listeners.append(changed.set)
    try:
        async with asyncio.timeout_at(end):
            while not condition():
                changed.clear()
                await changed.wait()
    except TimeoutError:
        return condition()
    finally:
        state.listeners.remove(changed.set)
    return True
