"""Which calls are being answered, so that a gateway can hand over when none are."""

import asyncio
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

_POLL_SECONDS = 0.05


class Calls:
    """Counts calls."""

    def __init__(self) -> None:
        self._in_progress = 0
        self._last = -math.inf

    @contextmanager
    def call(self) -> Iterator[None]:
        """Count a call while it is answered."""
        self._in_progress += 1
        self._last = time.monotonic()
        try:
            yield
        finally:
            self._in_progress -= 1

    async def until_they_stop(self, quiet: float, longest: float) -> None:
        """Wait until, after some, no call has come for *quiet* seconds; or *longest* seconds.

        Where none come, nobody knows whether the next one goes elsewhere: that takes longest.
        """
        start = time.monotonic()
        while time.monotonic() < start + longest:
            if self._last >= start and time.monotonic() - self._last >= quiet:
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def until_answered(self, longest: float) -> None:
        """Wait until no call is being answered, at most *longest* seconds."""
        end = time.monotonic() + longest
        while self._in_progress and time.monotonic() < end:  # noqa: ASYNC110 - rare and short
            await asyncio.sleep(_POLL_SECONDS)
