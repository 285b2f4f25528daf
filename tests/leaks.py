"""Fails a test that leaves threads, processes, pipes or files behind: they disturb others.

What a fixture of a wider scope started is there when the test begins, and may stay. A task needs no
such check: pytest-asyncio cancels what is left in an event loop before the loop ends.
"""

import gc
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from tests.processes import children

GRACE_SECONDS = 5.0
"""How long a thread may take to end after the test, or to close a file."""

SHARED_THREADS = ("asyncio_", "(_poll_wrapper)", "alarm")
"""Parts of names: executors, which end with their event loop, gRPC's, which it ends itself, and the
one of the process that takes the alarm of plugins."""

SHARED_PROCESSES = ("forkserver", "chrom")
"""Parts of names and commands: the fork server runs once for all tests, with what it forks, and a
browser starts and ends its own at any time."""

RESTARTING = ("layouts", "shared_world", "stack")
"""Fixtures for many tests that start processes anew, and read their pipes."""

NAMES = ("comm", "cmdline")

uvloop.new_event_loop().close()  # the first one opens a pipe for signals, which stays


@pytest.fixture(autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compare threads, processes and descriptors before and after the test."""
    threads, processes, before = set(threading.enumerate()), _descendants("self"), _open()
    yield
    left = [
        thread for thread in threading.enumerate() if thread not in threads and not _shared(thread)
    ]
    for thread in left:
        if thread.is_alive():  # and not about to be started by another one
            thread.join(GRACE_SECONDS)
    names = [thread.name for thread in left if thread.is_alive()]
    names += [f"{pid}: {_command(pid)}" for pid in _descendants("self") - processes]
    if len(_open()) > len(before):
        # What was not closed warns now, which fails this test, and not later amid another one.
        gc.collect()
        end = time.monotonic() + GRACE_SECONDS
        while not _restarts(request) and len(after := _files(_open())) > len(_files(before)):
            if time.monotonic() > end:
                names += sorted(after - _files(before))
                break
            time.sleep(0.01)  # a thread of a fixture may just read one
    assert names == [], "the test left threads, processes, pipes or files behind"


def _shared(thread: threading.Thread) -> bool:
    return any(part in thread.name for part in SHARED_THREADS)


def _restarts(request: pytest.FixtureRequest) -> bool:
    return any(name in request.fixturenames for name in RESTARTING)


def _open() -> set[str]:
    """Return what this process has open: each descriptor with its file, pipe or socket."""
    found = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - twice for each test
        with suppress(OSError):  # the one of the listing
            found.add(f"{name}: {os.readlink(f'/proc/self/fd/{name}')}")  # noqa: PTH115
    return found


def _files(found: set[str]) -> set[str]:
    """Leave out sockets: gRPC's threads close them later, the warning is for all others."""
    return {each for each in found if not re.match(r"\d+: (socket|anon_inode):", each)}


def _descendants(pid: str) -> set[str]:
    """Return the processes that this one started, and they."""
    found: set[str] = set()
    for child in children(pid):
        command = _command(child)
        if command and not any(part in command for part in SHARED_PROCESSES):
            found |= {child, *_descendants(child)}
    return found


def _command(pid: str) -> str:
    """Return the name and the command line of a process; "" if it has ended."""
    try:
        name, line = (Path("/proc", pid, each).read_text() for each in NAMES)
    except OSError:
        return ""
    return f"{name.strip()}: {line.replace(chr(0), ' ').strip()}"
