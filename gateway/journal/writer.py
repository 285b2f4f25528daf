"""Writes the journal in a thread of its own, so that no disk makes a cycle wait.

The event loop puts entries into a queue that is bounded by memory. The thread makes records of
them. If one cannot be written, the segment ends, and everything is dropped until the next one.
"""

import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.journal.records import Entry, Redaction
from gateway.journal.segments import VERSION, Segment, remove_oldest
from gateway.settings import GatewaySettings
from moorage import __version__
from moorage.v1 import journal_pb2 as pb

Cause = Literal["queue", "write", "no_segment"]


class JournalMetrics:
    """The metrics of the journal.

    Attributes:
        total_dropped: How many records were dropped, by cause.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._records = Counter(
            "moorage_journal_records",
            "Records written to the journal, by type: header, state, policy, cycle, bind, end.",
            ["type"],
            registry=registry,
        )
        self._bytes = Counter(
            "moorage_journal_written_bytes", "Bytes written to the journal.", registry=registry
        )
        self._dropped = Counter(
            "moorage_journal_dropped",
            "Records that are missing in the journal: queue (too much waited), write (the file "
            "could not be written), no_segment (no segment had begun).",
            ["cause"],
            registry=registry,
        )
        self._waiting = Gauge(
            "moorage_journal_waiting_bytes",
            "Memory of what waits to be written to the journal.",
            registry=registry,
        )
        self.total_dropped: dict[str, int] = {}

    def written(self, kind: str, size: int) -> None:
        """Count a record."""
        self._records.labels(kind).inc()
        self._bytes.inc(size)

    def dropped(self, cause: Cause) -> None:
        """Count a record that was not written."""
        self._dropped.labels(cause).inc()
        self.total_dropped[cause] = self.total_dropped.get(cause, 0) + 1

    def waiting(self, size: int) -> None:
        """Note how much waits."""
        self._waiting.set(size)


FORCE_SECONDS = 1.0
"""How often the file is forced to disk."""

GATHER_SECONDS = 0.02
"""How long the thread sleeps when it has written everything."""

CLOSE_SECONDS = 5.0
"""How long the end of the gateway waits until everything is written."""


class JournalWriter:
    """The thread with its queue.

    Attributes:
        problem: Why the last write failed; empty if it did not.
        failures: How often a write has failed.
        grown: The bytes of the segment that are not its snapshot.
        cycles: The cycles in it.
    """

    def __init__(self, settings: GatewaySettings, metrics: JournalMetrics) -> None:
        """Write to the folder of *settings*; nothing is touched before the first entry."""
        assert settings.journal is not None  # noqa: S101 - else there is no journal
        self.problem = ""
        self.failures = 0
        self.grown = 0
        self.cycles = 0
        self._folder = settings.journal
        self._keep = settings.journal_segments
        self._limit = settings.journal_memory
        self._redaction = Redaction(settings.journal_annotations)
        self._metrics = metrics
        self._entries: SimpleQueue[tuple[float, Entry]] = SimpleQueue()
        self._put = self._taken = 0
        self._current: Segment | None = None
        self._next: Segment | None = None
        self._segments = 0
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The memory of what waits."""
        return self._put - self._taken

    @property
    def is_filling(self) -> bool:
        """Whether a snapshot should wait before more of it comes."""
        return self.waiting > self._limit // 2

    def put(self, entry: Entry) -> bool:
        """Have an entry written; return false if too much waits already. Never waits."""
        size = entry.size
        if self.waiting + size > self._limit and entry.kind not in ("end", "last"):
            return False
        self._put += size
        self._entries.put((time.time(), entry))
        return True

    def close(self) -> None:
        """Write what waits, end the segment, and wait for that, but not for long."""
        self.put(Entry("last"))
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        # Signals are for the main thread: this one may wait for the disk.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        forced = time.monotonic()
        while True:
            try:
                now, entry = self._entries.get(timeout=FORCE_SECONDS)
            except Empty:
                self._guarded(self._force_now)
                continue
            self._guarded(lambda: self._handle(now, entry))  # noqa: B023 - called at once
            self._taken += entry.size
            if entry.kind == "last":
                return
            if time.monotonic() - forced > FORCE_SECONDS:
                forced = time.monotonic()
                self._guarded(self._force_now)
            # Lets the event loop have the interpreter. To wake a thread costs it more than to put
            # an entry, so it need not do that for each.
            time.sleep(GATHER_SECONDS if self._entries.empty() else 0)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a defect here must not stop the gateway
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        self.problem = f"{self._folder} cannot be written: {reason or type(error).__name__}"
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            self.problem += "; make room, or keep fewer segments (--journal-segments)"
        self._metrics.dropped("write")
        self.failures += 1
        for segment in (self._current, self._next):
            if segment is not None:
                segment.close()
        if self._next is not None:
            self._next.discard()  # its snapshot is not complete
        self._current = self._next = None

    def _force_now(self) -> None:
        if self._current is not None:
            self._current.force()

    def _handle(self, now: float, entry: Entry) -> None:
        match entry.kind:
            case "opening":
                self._open(now, entry)
            case "part" | "last part":
                self._add_part(now, entry)
            case "end":
                self._end(now)
            case "last":
                if self._next is not None:
                    self._next.discard()
                    self._next = None
                self._end(now)
            case _:
                self._append(now, entry)

    def _open(self, now: float, entry: Entry) -> None:
        if self._next is not None:
            self._next.discard()
        if self._folder.is_dir():  # first, as the disk may be full
            remove_oldest(self._folder, self._keep - 1)
        self._segments += 1
        self._next = Segment(self._folder, self._segments)
        first, kinds = entry.records(self._redaction)
        first.header.version, first.header.moorage_version = VERSION, __version__
        first.header.gateway, first.header.segment = socket.gethostname(), self._segments
        first.header.dropped.update(self._metrics.total_dropped)
        first.header.redacted = True
        first.header.kept_annotations.extend(self._redaction.kept)
        self._write(self._next, now, first)
        self._write(self._next, now, kinds)

    def _add_part(self, now: float, entry: Entry) -> None:
        segment = self._next
        if segment is None:  # it failed, and the event loop has not noticed yet
            self._metrics.dropped("write")
            return
        for record in entry.records(self._redaction):
            self._write(segment, now, record)
        if entry.kind == "part":
            return
        segment.snapshot_size = segment.size
        segment.force()
        self._end(now)
        self._current, self._next, self.problem = segment, None, ""
        self.grown = self.cycles = 0

    def _append(self, now: float, entry: Entry) -> None:
        segment = self._current
        if segment is None:
            self._metrics.dropped("write")
            return
        for record in entry.records(self._redaction):
            self._write(segment, now, record)
        segment.cycles += entry.kind == "cycle"
        self.grown, self.cycles = segment.size - segment.snapshot_size, segment.cycles

    def _end(self, now: float) -> None:
        segment, self._current = self._current, None
        if segment is not None:
            segment.end(now)

    def _write(self, segment: Segment, now: float, record: pb.JournalRecord) -> None:
        record.time = now
        if record.HasField("state"):
            segment.generation = max(segment.generation, record.state.generation)
        self._metrics.written(record.WhichOneof("record") or "", segment.write(record))
