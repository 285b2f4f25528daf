"""How fast work goes, and how long the rest of it takes. For `cli.shared.screen`."""

import time
from collections import deque
from collections.abc import Callable

WINDOW_SECONDS = 10.0
"""The rate is that of the newest seconds: work rarely goes at the same rate all the time."""

SAMPLE_SECONDS = 0.25
"""Updates that come closer together count as one."""

LEAST_SECONDS = 0.5
"""No rate is shown before: it would be a guess."""

MINUTES_FROM = 120.0
"""So many seconds and more are shown in minutes."""


class Pace:
    """How much is done of a total, and when."""

    def __init__(
        self, total: int, done: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin now, with some done already; *clock* returns the time in seconds."""
        self._total = total
        self._done = done
        self._clock = clock
        self._samples = deque([(clock(), done)])

    def update(self, done: int) -> None:
        """Note how much is done."""
        now, self._done = self._clock(), done
        if now - self._samples[-1][0] >= SAMPLE_SECONDS:
            self._samples.append((now, done))

    def __str__(self) -> str:
        parts = [f"{self._done}/{self._total}"]
        rate = self._rate()
        if rate is not None and self._done < self._total:
            parts.append(f"{rate:.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
            if rate:
                parts.append(f"{_duration((self._total - self._done) / rate)} left")
        return " · ".join(parts)

    def _rate(self) -> float | None:
        now = self._clock()
        while len(self._samples) > 1 and now - self._samples[0][0] > WINDOW_SECONDS:
            self._samples.popleft()
        then, before = self._samples[0]
        return (self._done - before) / (now - then) if now - then >= LEAST_SECONDS else None


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < MINUTES_FROM else f"{seconds / 60:.0f} min"
