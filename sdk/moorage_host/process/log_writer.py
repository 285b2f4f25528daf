"""Writes log lines in a thread of its own, and counts those that nobody will see.

A full disk or an unread pipe so stops nobody else. The queue is bounded, and nothing here takes a
lock that code in the middle of a log call could hold: signals and the garbage collector may log at
any moment.
"""

import os
import select
import signal
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Final, Literal, TextIO

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

Cause = Literal["queue", "write", "repeated"]

WRITABLE_SECONDS: Final = 1.0
"""How often a stream that never blocks, and is full, is looked at."""


class LogDrops(Collector):
    """Counts the log lines that nobody will see. Without locks."""

    _labelnames = ("cause",)

    def __init__(self) -> None:
        """Begin with none."""
        self._lines: dict[Cause, int] = {"queue": 0, "write": 0, "repeated": 0}

    def count(self, cause: Cause) -> None:
        """Count a line."""
        self._lines[cause] += 1

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Give the metric."""
        family = CounterMetricFamily(
            "moorage_log_dropped",
            "Log lines that were not written: queue (too many waited), write (stderr refused), "
            "repeated (logged too often).",
            labels=self._labelnames,
        )
        for cause, lines in self._lines.items():
            family.add_metric([cause], lines)
        yield family


DROPS = LogDrops()
REGISTRY.register(DROPS)


class LogWriter:
    """A bounded queue of lines, and the thread that writes them.

    Args:
        stream: Where to; its file is written to directly, past its buffer.
        queue: Lines that may wait.
    """

    def __init__(self, stream: TextIO, queue: int) -> None:
        self._file = stream.fileno()
        self._limit = queue
        self._is_stuck = False
        self._lines: SimpleQueue[bytes | threading.Event] = SimpleQueue()
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def put(self, line: str) -> None:
        """Have a line written, or dropped if too many wait. Never waits, never raises."""
        if self._lines.qsize() >= self._limit:
            DROPS.count("queue")
        else:
            self._lines.put(line.encode(errors="backslashreplace") + b"\n")

    def flush(self, seconds: float) -> None:
        """Wait until all is written, for so long at most; not again after that was in vain."""
        done = threading.Event()
        self._lines.put(done)
        self._is_stuck = not done.wait(0 if self._is_stuck else seconds)

    def _run(self) -> None:
        # Signals are for the main thread: this one may be stuck in a write.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            line = self._lines.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            try:
                self._write(line)
            except OSError:
                DROPS.count("write")

    def _write(self, line: bytes) -> None:
        while line:
            try:
                line = line[os.write(self._file, line) :]
            except BlockingIOError:
                select.select((), (self._file,), (), WRITABLE_SECONDS)
