"""How fresh the objects of a reflector are."""

import asyncio
import math
import time


class Freshness:
    """Up to when everything is known, and the lists that prove it.

    Attributes:
        as_of: On the monotonic clock: everything is known that happened before.
        list_began: When the newest list was asked for.
    """

    def __init__(self) -> None:
        self.as_of = -math.inf
        self.list_began = -math.inf
        self._listed = asyncio.Event()

    def begin_list(self) -> None:
        """Note that a list is asked for."""
        self.list_began = time.monotonic()

    def complete_list(self) -> None:
        """Note that it is in."""
        self.show(self.list_began)
        self._listed.set()

    def show(self, as_of: float) -> None:
        """Note that everything is known that happened before."""
        self.as_of = max(self.as_of, as_of)

    async def next_list(self) -> None:
        """Wait until another list is in."""
        self._listed.clear()
        await self._listed.wait()
