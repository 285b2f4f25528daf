"""Turns exceptions into one clear line and an exit code. For every command."""

import errno
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cli.shared.output import echo
from moorage.errors import MoorageError, causes

_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)

PLACE_FIRST = re.compile(r"[^:\n]+\.(?:py|ya?ml|json):\d+: ")
"""How messages about a file of the user begin."""

PLACE = re.compile(r"[^:\n]+:\d+: ")
"""How each of several lines begins that are about one document, wherever it came from."""

PLACE_WITHIN = re.compile(r"(.*?) \(([^():]+\.py:\d+)\)(.*)", re.DOTALL)
"""How messages about a plugin that runs name its line."""


@contextmanager
def clear_failures(code: int = 1) -> Iterator[None]:
    """Run a command; if it fails for a reason that the user can change, print it and exit.

    Of several failures at once the first is printed: the others are mostly its consequences.

    Raises:
        SystemExit: With *code*, after a line on stderr.
    """
    try:
        yield
    except Exception as error:
        found = next((e for e in causes(error) if isinstance(e, MoorageError)), None)
        if found is None:
            raise
        text = described(found)
        echo(text if _places_first(text) else f"moorage: {text}", err=True)
        sys.exit(code)


def full_disk(error: BaseException) -> OSError | None:
    """Return what in *error* says that a disk is full, or takes nothing; None if nothing does."""
    found = (each for each in causes(error) if isinstance(each, OSError) and each.errno in _DISK)
    return next(found, None)


def described(error: MoorageError) -> str:
    """Return the text of an error; the line of a plugin's file comes first, as editors expect."""
    text = str(error)
    within = None if PLACE_FIRST.match(text) else PLACE_WITHIN.fullmatch(text)
    return f"{within[2]}: {within[1]}{within[3]}" if within else text


def _places_first(text: str) -> bool:
    lines = text.splitlines()
    return bool(PLACE_FIRST.match(text)) or (len(lines) > 1 and all(map(PLACE.match, lines)))
