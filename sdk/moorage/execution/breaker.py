"""Keeps a plugin that overruns its time budget again and again from slowing every cycle."""

import time
from collections.abc import Callable
from dataclasses import dataclass

OVERRUNS = 3
"""Cycles in a row that a plugin may overrun its time budget in before it is suspended."""

SUSPENSION_SECONDS = 30.0
"""How long a suspended plugin is left alone before it is tried again."""


@dataclass(slots=True, kw_only=True)
class Breaker:
    """Counts overruns in a row; open means that the plugin is suspended.

    Attributes:
        clock: A monotonic clock, in seconds.
        overruns: How many there were in a row.
        last: Where the last one was: the method, and in brackets file and line.
        opened_at: When the plugin was suspended, on the clock.
    """

    clock: Callable[[], float] = time.monotonic
    overruns: int = 0
    last: str = ""
    opened_at: float = float("-inf")

    @property
    def is_open(self) -> bool:
        """Whether the plugin is suspended now. After the suspension one cycle tries it again."""
        return self.clock() - self.opened_at < SUSPENSION_SECONDS

    def overran(self, place: str) -> None:
        """Note that the plugin overran its time budget at *place*; other failures cost no time."""
        self.overruns += 1
        self.last = place
        if self.overruns >= OVERRUNS:
            self.opened_at = self.clock()

    def succeeded(self) -> None:
        """Note a cycle within the budget, at all extension points."""
        self.overruns = 0
