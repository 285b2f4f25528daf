"""Who called last, and when: shows whether kube-scheduler reaches the gateway, and as whom."""

import time
from collections.abc import Callable
from typing import Any

KEPT = 32
"""Callers and verbs that are kept; the one whose last call is longest ago is forgotten first."""


class LastCalls:
    """The newest call of each caller and verb."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Know no call; *clock* returns the time in seconds."""
        self._clock = clock
        self._calls: dict[tuple[str, str], tuple[int, float]] = {}

    def note(self, caller: str, verb: str) -> None:
        """Note a call; the verb is "" for somebody who may not call."""
        count, _ = self._calls.pop((caller, verb), (0, 0.0))
        self._calls[caller, verb] = count + 1, self._clock()
        if len(self._calls) > KEPT:
            del self._calls[next(iter(self._calls))]

    def shown(self) -> list[dict[str, Any]]:
        """Return them, the newest first; without a verb for those that were refused."""
        now = self._clock()
        return [
            {
                "caller": caller,
                "verb": verb,
                "refused": not verb,
                "calls": count,
                "secondsAgo": round(now - last, 3),
            }
            for (caller, verb), (count, last) in reversed(self._calls.items())
        ]
