"""What is counted about the journal."""

from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge

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
            "Records that are not in the journal, by cause: queue (too much waited to be written), "
            "write (the file could not be written), no_segment (a cycle or bind ended before a new "
            "segment had begun).",
            ["cause"],
            registry=registry,
        )
        self._waiting = Gauge(
            "moorage_journal_waiting_bytes",
            "Memory of what waits to be written to the journal, about.",
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
