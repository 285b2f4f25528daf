"""The one way to wait for what nobody announces: another process's state, answers over HTTP."""

import asyncio
import inspect
from collections.abc import Callable


async def until(condition: Callable[[], object], seconds: float = 50.0) -> None:
    """Wait until *condition*, a function or a coroutine function, returns something true.

    Raises:
        TimeoutError: It does not within *seconds*.
    """
    async with asyncio.timeout(seconds):
        while True:
            found = condition()
            if await found if inspect.isawaitable(found) else found:
                return
            await asyncio.sleep(0.01)
