"""What is wrong with a request, in words that its sender can act on."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from moorage.errors import MoorageError

T = TypeVar("T")

TOO_LARGE = "too_large"
"""The reason when a body exceeds its limit."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for text that is no JSON, has wrong types, or is nested too deeply."""

AT_ONCE = 1 << 18
"""Bytes of a list that are decoded in one go, in about 5 ms."""

LONGEST_PROBLEM = 500
"""Characters of a message: it may quote the request, and ends up in a log and in an event."""


class BadRequestError(MoorageError):
    """A request cannot be understood; the message has the path to the mistake, such as `$.Pod`.

    The message is cut where it would be long.

    `reason` is a label for metrics: one of a few words.
    """

    def __init__(self, problem: str, *, reason: str = "invalid") -> None:
        cut = len(problem) > LONGEST_PROBLEM
        super().__init__(f"{problem[:LONGEST_PROBLEM]}..." if cut else problem)
        self.reason = reason


@contextmanager
def decoding(path: str) -> Iterator[None]:
    """Turn decoding errors inside into BadRequestError, with paths that start at `path`."""
    try:
        yield
    except UNREADABLE as error:
        raise _bad_request(error, path) from error


async def decode_each(
    decode: Callable[[msgspec.Raw], T], raws: Iterable[msgspec.Raw], path: Callable[[int], str]
) -> list[T]:
    """Decode a list; BadRequestError names the item that failed by `path` of its index.

    Other calls go on between the parts of a long list, and its own call may be given up there.
    """
    decoded: list[T] = []
    size = 0
    try:
        for raw in raws:
            decoded.append(decode(raw))
            size += len(memoryview(raw))
            if size > AT_ONCE:
                size = 0
                await asyncio.sleep(0)
    except UNREADABLE as error:
        raise _bad_request(error, path(len(decoded))) from error
    return decoded


def _bad_request(error: Exception, path: str) -> BadRequestError:
    if isinstance(error, RecursionError):
        return BadRequestError(f"JSON is nested too deeply - at `{path}`", reason="malformed")
    if not isinstance(error, msgspec.ValidationError):
        return BadRequestError(f"{error} - at `{path}`", reason="malformed")
    problem, _, inner = str(error).partition(" - at `$")
    return BadRequestError(f"{problem} - at `{path}{inner.rstrip('`')}`")
