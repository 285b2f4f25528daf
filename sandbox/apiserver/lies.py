"""Answers with 200 that are not true: what a broken API server, or something before it, may send.

`Lie` names them. A watch lies until its fault is forgotten (`Faults.clear`), then goes on in
truth with what it has not sent; any other answer is one lie.
"""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import msgspec

from sandbox.apiserver.store.store import encode

Lie = Literal[
    "truncated",
    "html",
    "empty",
    "garbled",
    "twice",
    "out-of-order",
    "unknown",
    "backwards",
    "gzip",
    "split",
    "silent",
    "drip",
]
"""Truncated JSON; a page; an empty object; bytes that are no UTF-8; events twice; an older event
after a newer one; MODIFIED and DELETED of what nobody knows; a bookmark with a lower version; a
compressed body; chunks that end within a character; nothing at all; a byte now and then. The first
four end a watch, two of them are true: `gzip` and `split`."""

PAGE = b"<html><body>Sign in to go on</body></html>"
GZIP = {"Content-Encoding": "gzip"}


def answered(lie: Lie | None, body: bytes) -> bytes:
    """Return what is answered instead of a body."""
    match lie:
        case "truncated":
            return body[: len(body) // 2]
        case "html":
            return PAGE
        case "empty":
            return b"{}"
        case "garbled":
            return body.replace(b'"name":"', b'"name":"\xff')
        case "gzip":
            return gzip.compress(body)
        case _:
            return body


async def stream(
    chunks: AsyncIterator[bytes], lie: Callable[[], Lie | None], pace: float
) -> AsyncIterator[bytes]:
    """Send the lines of a watch, with a lie for as long as there is one.

    Args:
        chunks: The truth, in whole lines.
        lie: Returns the lie of now.
        pace: Seconds between two bytes of a drip, and between two looks whether a lie is over.
    """
    pace = max(pace, 0.01)
    compressor = zlib.compressobj(wbits=31) if lie() == "gzip" else None
    before = b""
    async for chunk in chunks:
        match lie():
            case "truncated" | "html" | "empty" | "garbled" as ending:
                yield answered(ending, chunk)
                return
            case "twice":
                chunk = b"".join(line * 2 for line in chunk.splitlines(keepends=True))
            case "out-of-order":
                chunk, before = chunk + before, _first_event(chunk) or before
            case "unknown":
                chunk += _of_nobody(chunk)
            case "backwards":
                chunk += _BACKWARDS
            case "split":
                at = next((i + 1 for i, byte in enumerate(chunk) if byte > 0xC0), len(chunk) // 2)
                yield chunk[:at]
                await asyncio.sleep(pace)
                chunk = chunk[at:]
            case "silent":
                while lie() == "silent":  # noqa: ASYNC110 - it is ended from anywhere
                    await asyncio.sleep(pace)
            case "drip":
                while lie() == "drip" and chunk:
                    yield chunk[:1]
                    chunk = chunk[1:]
                    await asyncio.sleep(pace)
        if compressor:
            chunk = compressor.compress(chunk) + compressor.flush(zlib.Z_SYNC_FLUSH)
        yield chunk


_BACKWARDS = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n'


def _first_event(chunk: bytes) -> bytes:
    """Return the first event about an object."""
    lines = (line for line in chunk.splitlines(keepends=True) if b'"BOOKMARK"' not in line)
    return next(lines, b"")


def _of_nobody(chunk: bytes) -> bytes:
    """Return a change and the end of objects that were never there, like that of an event."""
    line = _first_event(chunk)
    if not line:
        return b""
    lines = []
    for kind, name in (("MODIFIED", "nobody"), ("DELETED", "nothing")):
        event: dict[str, Any] = msgspec.json.decode(line)
        event["type"] = kind
        event["object"]["metadata"] |= {"name": name, "uid": name}
        lines.append(encode(event) + b"\n")
    return b"".join(lines)
