"""Bounds the time that shadows take: a token bucket of seconds."""

from collections.abc import Callable

BURST_SECONDS = 1.0
"""Of how many seconds the share can be saved up: in a quiet time nothing more is."""


class Budget:
    """The seconds that may be spent on the shadow of one profile.

    Attributes:
        spent: The seconds that were spent in all.
    """

    def __init__(self, share: float, clock: Callable[[], float]) -> None:
        """Allow a *share* of the time on *clock*, 0..1."""
        self.share = share
        self.spent = 0.0
        self._clock = clock
        self._began = self._filled = clock()
        self._left = share * BURST_SECONDS

    @property
    def allows(self) -> bool:
        """Whether something may be spent now; how much is known only afterwards."""
        now = self._clock()
        saved = self._left + (now - self._filled) * self.share
        self._left, self._filled = min(saved, self.share * BURST_SECONDS), now
        return self._left > 0

    @property
    def used(self) -> float:
        """The share of the time that was spent so far, 0..1."""
        return self.spent / max(self._clock() - self._began, 1e-9)

    def spend(self, seconds: float) -> None:
        """Take what a run needed; perhaps more than is left, which later time makes good."""
        self.spent += seconds
        self._left -= seconds
