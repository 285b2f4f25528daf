"""The processes that another one has started, and their end."""

import os
import signal
from contextlib import suppress


def children(pid: str = "self") -> list[str]:
    """Return the processes that one has started or adopted."""
    found: list[str] = []
    with suppress(OSError):  # it has ended
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - for each test
            with open(f"/proc/{pid}/task/{task}/children") as file:  # noqa: PTH123
                found += file.read().split()
    return found


def kill_children(pid: str = "self") -> None:
    """Kill all that a process has started, and what they have."""
    for child in children(pid):
        kill_with_children(child)


def kill_with_children(pid: str) -> None:
    """Kill a process and all that it has started."""
    started = children(pid)
    with suppress(ProcessLookupError):
        os.kill(int(pid), signal.SIGKILL)
    for child in started:
        kill_with_children(child)
