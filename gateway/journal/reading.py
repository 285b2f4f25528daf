"""Reads journals, for `moorage replay` and `moorage journal`.

What is wrong with a file is reported with its name and the offset. A torn record at the end is
accepted: the gateway or the machine ended while it was written.
"""

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError

from gateway.journal.segments import (
    MAGIC,
    VERSION,
    FrameError,
    TornFrameError,
    read_frame,
    segments_in,
)
from moorage.errors import MoorageError
from moorage.v1 import journal_pb2 as pb


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
