"""The segment files of a journal: how their bytes are laid out, written and read.

A file begins with `MAGIC`. Records follow, each as a frame: its length, a checksum, and its bytes,
long ones compressed. The writer appends frames; readers accept that the last one is torn, as after
a crash, and report anything else with the file's name and the offset.
"""

import mmap
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from moorage.errors import MoorageError
from moorage.v1 import journal_pb2 as pb

MAGIC: Final = b"MOORAGE-JOURNAL-1\n"
"""How a segment file begins."""

VERSION: Final = 1
"""The form of records."""

MAX_RECORD: Final = 256 << 20
"""The bytes that a record has at most, compressed or not; readers refuse more."""

WORTH_COMPRESSING: Final = 256
"""Bytes from which on a record is compressed."""

Sliceable = bytes | mmap.mmap

_HEAD: Final = Struct("<IIB")  # bytes of the content, their CRC-32, how they are encoded
_PLAIN, _ZLIB = 0, 1
_LEVEL: Final = 1


class FrameError(Exception):
    """Bytes are no frame."""


class TornFrameError(FrameError):
    """Bytes end within a frame."""


class Frame(NamedTuple):
    """A record, and where the next frame begins."""

    content: bytes
    end: int


def to_frame(content: bytes) -> bytes:
    """Return a record as a frame."""
    coding = _PLAIN
    if len(content) >= WORTH_COMPRESSING:
        content, coding = zlib.compress(content, _LEVEL), _ZLIB
    return _HEAD.pack(len(content), zlib.crc32(content), coding) + content


def read_frame(data: Sliceable, start: int) -> Frame:
    """Return the frame that begins at *start*.

    Raises:
        TornFrameError: The data ends within it.
        FrameError: There is none.
    """
    begin = start + _HEAD.size
    if begin > len(data):
        raise TornFrameError(f"{len(data) - start} bytes, fewer than a record begins with")
    length, checksum, coding = _HEAD.unpack_from(data, start)
    end = begin + length
    if not 0 < length <= MAX_RECORD or coding not in (_PLAIN, _ZLIB):
        raise FrameError("no record begins here")
    if end > len(data):
        raise TornFrameError(f"a record of {length} bytes, of which {len(data) - begin} are there")
    content = bytes(data[begin:end])
    if zlib.crc32(content) != checksum:
        # Where a machine fails, the length may be on disk before the content.
        kind = TornFrameError if end == len(data) else FrameError
        raise kind(f"the checksum of a record of {length} bytes is wrong")
    return Frame(content if coding == _PLAIN else _inflated(content), end)


def _inflated(content: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(content, MAX_RECORD)
    except zlib.error as error:
        raise FrameError(f"a compressed record is damaged: {error}") from error
    if not inflater.eof:
        raise FrameError(f"a record has more than {MAX_RECORD} bytes, or is cut off")
    return inflated


SUFFIX = ".journal"

_NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z-\d+\.journal")
_PRIVATE = 0o600


def segments_in(folder: Path) -> Sequence[Path]:
    """Return the segments in a folder, the oldest first; raises OSError."""
    return sorted(each for each in folder.iterdir() if _NAME.fullmatch(each.name))


def remove_oldest(folder: Path, keep: int) -> None:
    """Delete all segments but the newest; what cannot be deleted stays.

    Those dated more than a day ahead go first: no gateway with a right clock has written them.
    """
    ahead = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y%m%dT%H%M%S")
    by_age = sorted(segments_in(folder), key=lambda path: path.name <= ahead)
    for path in by_age[:-keep]:
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
        """Append a record; return its bytes; raises OSError."""
        frame = to_frame(record.SerializeToString())
        self._append(frame)
        self._is_forced = False
        return len(frame)

    def force(self) -> None:
        """Wait until everything is on the disk; raises OSError."""
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


class JournalError(MoorageError):
    """A journal cannot be read."""


@dataclass(slots=True)
class Torn:
    """Where a file ends within a record, and how; empty if it does not."""

    note: str = ""


def find_segments(path: Path) -> Sequence[Path]:
    """Return the segments of a journal, the oldest first: a folder, or one of its files.

    Raises:
        JournalError: There is none.
    """
    if path.is_file():
        return [path]
    try:
        found = segments_in(path)
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error
    if not found:
        raise JournalError(f"{path} has no segments of a journal (*.journal)")
    return found


def read_segment(path: Path, torn: Torn | None = None) -> Iterator[tuple[int, pb.JournalRecord]]:
    """Yield the records of a segment with their offsets; note in *torn* whether the last is torn.

    Raises:
        JournalError: It is no segment, it is damaged, or a newer Moorage wrote it.
    """
    try:
        with path.open("rb") as file:
            if not file.read(1):
                _note(torn, f"{path} is empty")
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield from _records(path, data, torn)
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error


def _records(
    path: Path, mapped: mmap.mmap, torn: Torn | None
) -> Iterator[tuple[int, pb.JournalRecord]]:
    begin = mapped[: len(MAGIC)]
    if begin != MAGIC:
        if MAGIC.startswith(begin):
            _note(torn, f"{path} ends at offset {len(begin)}, before its first record")
            return
        raise JournalError(
            f"{path}: offset 0: no segment of a journal: it begins with {begin[:12]!r}"
        )
    offset = len(MAGIC)
    while offset < len(mapped):
        try:
            frame = read_frame(mapped, offset)
        except TornFrameError as error:
            _note(torn, f"{path}: offset {offset}: the last record is torn: {error}")
            return
        except FrameError as error:
            if not any(mapped[offset:]):  # a machine failed before the content was on disk
                _note(torn, f"{path}: offset {offset}: only zeros follow")
                return
            raise JournalError(f"{path}: offset {offset}: damaged: {error}") from error
        yield offset, _decoded(path, offset, frame.content)
        offset = frame.end


def _decoded(path: Path, offset: int, content: bytes) -> pb.JournalRecord:
    try:
        record = pb.JournalRecord.FromString(content)
    except DecodeError as error:
        raise JournalError(f"{path}: offset {offset}: no record of a journal: {error}") from error
    is_first, is_header = offset == len(MAGIC), record.HasField("header")
    if is_first is not is_header:
        what = "the first record is no header" if is_first else "a header within a segment"
        raise JournalError(f"{path}: offset {offset}: damaged: {what}")
    if is_header and record.header.version != VERSION:
        raise JournalError(
            f"{path}: records of form {record.header.version}, of Moorage "
            f"{record.header.moorage_version}; this one reads form {VERSION}"
        )
    return record


def _note(torn: Torn | None, note: str) -> None:
    if torn is not None:
        torn.note = note
