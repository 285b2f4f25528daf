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
        TimeoutError: It does not within *seconds*. The message has the condition, and what it
            returned last.
    """
    clock = asyncio.get_running_loop().time
    begun, found = clock(), object()
    try:
        async with asyncio.timeout(seconds):
            while True:
                asked = clock()
                found = condition()
                if inspect.isawaitable(found):
                    found = await found
                if found:
                    return
                now = clock()
                await asyncio.sleep(min(max(0.01, 2 * (now - asked), (now - begun) / 20), 0.2))
    except TimeoutError as error:
        if clock() < begun + seconds:
            raise  # the condition's own
        message = f"not within {seconds:g} s: {_source(condition)}; last: {found!r:.500}"
        raise TimeoutError(message) from error


def _source(condition: Callable[[], object]) -> str:
    """Return where a condition is written, and how if that is known."""
    code = getattr(inspect.unwrap(condition), "__code__", None)
    if code is None:
        return repr(condition)
    try:
        lines = inspect.getsourcelines(code)[0]
    except OSError:
        lines = []
    return f"{code.co_filename}:{code.co_firstlineno}: {' '.join(map(str.strip, lines)):.200}"


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
