"""The one way to wait for what nobody announces: another process's state, answers over HTTP.

And to read what a process adds to its log.
"""

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path


async def until(condition: Callable[[], object], seconds: float = 50.0) -> None:
    """Wait until *condition*, a function or a coroutine function, returns something true.

    What takes long to find out, or to happen, is asked about less often: the processor time goes to
    what is waited for.

    Raises:
        TimeoutError: It does not within *seconds*.
    """
    clock = asyncio.get_running_loop().time
    begun = clock()
    async with asyncio.timeout(seconds):
        while True:
            asked = clock()
            found = condition()
            if await found if inspect.isawaitable(found) else found:
                return
            now = clock()
            await asyncio.sleep(min(max(0.01, 2 * (now - asked), (now - begun) / 20), 0.2))


class NewLines:
    """The whole lines that were added to a file since the last time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[bytes]:
        """Return them, without their ends."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        return complete.splitlines()
