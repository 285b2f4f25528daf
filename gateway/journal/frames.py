"""Records as bytes of a file: each with its length and a checksum, long ones compressed.

A file begins with `MAGIC`. The writer appends frames; readers accept that the last one is torn, as
after a crash, and nothing else.
"""

import mmap
import zlib
from struct import Struct
from typing import Final, NamedTuple

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
