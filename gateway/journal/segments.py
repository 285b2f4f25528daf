"""The segment files of a journal: their names, how they are written, and how many there are."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from gateway.journal.frames import MAGIC, to_frame
from moorage.v1 import journal_pb2 as pb

SUFFIX = ".journal"

_NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z-\d+\.journal")
_PRIVATE = 0o600


def segments_in(folder: Path) -> Sequence[Path]:
    """Return the segments in a folder, the oldest first.

    Raises:
        OSError: The folder cannot be read.
    """
    return sorted(each for each in folder.iterdir() if _NAME.fullmatch(each.name))


def remove_oldest(folder: Path, keep: int) -> None:
    """Delete all segments but the newest; what cannot be deleted stays."""
    for path in segments_in(folder)[:-keep]:
        with suppress(OSError):
            path.unlink()


class Segment:
    """A file that grows; what is written to it is not buffered.

    Attributes:
        path: The file.
        size: Its bytes.
        snapshot_size: Those up to the end of the snapshot of the state; 0 before that.
        cycles: The cycles in it.
        generation: That of the newest state in it.
    """

    def __init__(self, folder: Path, number: int) -> None:
        """Begin a new file for the segment of this number; the folder is made if need be.

        Raises:
            OSError: That is not possible.
        """
        folder.mkdir(parents=True, exist_ok=True)
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self.path = folder / f"{now}-{number}{SUFFIX}"
        self.size = self.snapshot_size = self.cycles = self.generation = 0
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
        self._is_forced = True
        try:
            self._append(MAGIC)
        except OSError:
            self.discard()
            raise

    def write(self, record: pb.JournalRecord) -> int:
        """Append a record; return its bytes.

        Raises:
            OSError: It cannot be written, and no part of it is there.
        """
        frame = to_frame(record.SerializeToString())
        self._append(frame)
        self._is_forced = False
        return len(frame)

    def force(self) -> None:
        """Wait until everything is on the disk.

        Raises:
            OSError: The disk fails.
        """
        if not self._is_forced:
            os.fsync(self._file)
            self._is_forced = True

    def end(self, time: float) -> None:
        """Write the last record, and close.

        Raises:
            OSError: It cannot be written.
        """
        try:
            end = pb.JournalEnd(cycles=self.cycles, generation=self.generation)
            self.write(pb.JournalRecord(time=time, end=end))
            self.force()
        finally:
            self.close()

    def close(self) -> None:
        """Write no more."""
        with suppress(OSError):
            os.close(self._file)

    def discard(self) -> None:
        """Delete it."""
        self.close()
        with suppress(OSError):
            self.path.unlink()

    def _append(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self.size)
            raise
        self.size += len(data)
