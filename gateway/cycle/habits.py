"""What is usual, and so whether scoring should begin beside the filter half.

Called by `gateway.cycle.score_ahead`.
"""

import numpy as np

from gateway.cycle.filtering import Filtered
from gateway.cycle.node_set import UNKNOWN, Mask, Rows

DECAY = 0.9
"""How much the pauses before count beside the newest."""


class Pauses:
    """How soon prioritize comes after the filter half, compared with how long scoring takes."""

    def __init__(self, ample: float) -> None:
        """Call a pause ample that is so many times as long as scoring takes."""
        self._ample = ample
        self._pause = 0.0
        self._needed = 0.0

    def are_short(self) -> bool:
        """Whether scores are asked for before they could be there."""
        return self._pause < self._ample * self._needed

    def paused(self, seconds: float) -> None:
        """Note how long after the filter half scores were asked for."""
        self._pause = DECAY * self._pause + (1 - DECAY) * seconds

    def scored(self, seconds: float) -> None:
        """Note how long scoring took after the filter half; beside it, it takes longer."""
        self._needed = DECAY * self._needed + (1 - DECAY) * seconds


class Habit:
    """What a profile's filters ruled out, each node the last time that it was asked about.

    Attributes:
        steady: The last cycle changed nothing of it.
    """

    def __init__(self) -> None:
        self.steady = False
        self._version = -1
        self._left = np.zeros(0, np.bool_)  # by row; the last one is of unknown nodes

    def left(self, where: Rows, version: int) -> Mask | None:
        """Return which nodes will probably be left, if the rows still mean the same."""
        return self._left[where] if self.steady and version == self._version else None

    def learn(self, filtered: Filtered, version: int, capacity: int, *, claimed: bool) -> None:
        """Remember what a cycle ruled out; a claim leaves one of the nodes that are scored."""
        if version != self._version:
            self._version, self._left = version, np.ones(capacity + 1, np.bool_)
            self._left[UNKNOWN] = False
        where, kept = filtered.found.where, filtered.kept
        self.steady = not claimed and bool((self._left[where] == kept).all())
        self._left[where] = kept
        self._left[UNKNOWN] = False
