"""What plugins print, as lines of the log under the plugin's name.

The services use their standard output for one line, which reports where they serve; whoever started
them may read no further, and then a full pipe would stop the process.
"""

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import PurePath
from types import FrameType

from moorage.plugin.hooks import Plugin

MAX_LINE = 2_000
"""Characters of a printed line that are logged."""

MAX_OPEN_LINES = 64
"""Plugins and modules whose line may lack its end; with more, such lines are logged as they are."""


@contextmanager
def printed_to_log() -> Iterator[None]:
    """Log what is printed inside the block."""
    with redirect_stdout(_Printed()):
        yield


class _Printed(io.TextIOBase):
    """Standard output whose lines go to the log of whoever prints them."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, str] = {}

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        source = _source(sys._getframe(1))
        *lines, rest = (self._open.pop(source, "") + text).split("\n")
        if rest and (len(rest) > MAX_LINE or len(self._open) >= MAX_OPEN_LINES):
            lines, rest = [*lines, rest], ""
        if rest:
            self._open[source] = rest
        for line in lines:
            if line.strip():
                logging.getLogger(source).info("%s", line[:MAX_LINE])
        return len(text)


def _source(frame: FrameType | None) -> str:
    """Return the name of the plugin whose method prints, or that of the module."""
    module = frame.f_globals.get("__name__", "") if frame else ""
    while frame:
        owner = frame.f_locals.get("self")
        if isinstance(owner, Plugin):
            return owner.name
        frame = frame.f_back
    is_file = module.startswith("moorage_plugin:")
    return PurePath(module).stem if is_file else module or "stdout"
