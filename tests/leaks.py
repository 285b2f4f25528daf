"""Fails a test that leaves threads or processes behind: they disturb others.

What a fixture of a wider scope started is there when the test begins, and may stay. A task needs no
such check: pytest-asyncio cancels what is left in an event loop before the loop ends.
"""

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

GRACE_SECONDS = 5.0
"""How long a thread may take to end after the test."""

SHARED_THREADS = ("asyncio_", "(_poll_wrapper)")
"""Parts of names: executors, which end with their event loop, and gRPC's, which it ends itself."""

SHARED_PROCESSES = ("forkserver",)
"""Parts of names and commands: the fork server runs once for all tests, with what it forks."""

NAMES = ("comm", "cmdline")


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Compare threads and processes before and after the test."""
    threads, processes = set(threading.enumerate()), _descendants("self")
    yield
    left = [
        thread for thread in threading.enumerate() if thread not in threads and not _shared(thread)
    ]
    for thread in left:
        if thread.is_alive():  # and not about to be started by another one
            thread.join(GRACE_SECONDS)
    names = [thread.name for thread in left if thread.is_alive()]
    names += [
        f"{pid}: {command}"
        for pid, command in (_descendants("self") - processes)
        if not any(module in command for module in SHARED_PROCESSES)
    ]
    assert names == [], "the test left threads or processes behind"


def _shared(thread: threading.Thread) -> bool:
    return any(part in thread.name for part in SHARED_THREADS)


def _descendants(pid: str) -> set[tuple[str, str]]:
    """Return the processes that this one started, and they, with their commands."""
    found: set[tuple[str, str]] = set()
    for file in Path("/proc", pid, "task").glob("*/children"):
        with suppress(OSError):
            for child in file.read_text().split():
                name, line = (Path("/proc", child, each).read_text() for each in NAMES)
                found.add((child, f"{name.strip()}: {line.replace(chr(0), ' ').strip()}"))
                found |= _descendants(child)
    return found
