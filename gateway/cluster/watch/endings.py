"""How watches end, and how long a reflector waits before the next one."""

import math
import time
from dataclasses import dataclass

from gateway.cluster.watch.limits import ReflectorLimits, Restart
from moorage.backoff import Backoff

OUTAGE = frozenset((Restart.UNREACHABLE, Restart.SERVER_ERROR))


class NoStreamedListError(Exception):
    """The server does not end the initial events of a watch."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a watch ended.

    Attributes:
        reason: Why.
        at_once: Whether the next watch begins without a wait.
        retry_after: What the server asks for, in seconds.
    """

    reason: Restart
    at_once: bool = False
    retry_after: float | None = None


class Waits:
    """The waits between watches: they grow while watches fail, though less in an outage."""

    def __init__(self, limits: ReflectorLimits) -> None:
        lowest = min(limits.backoff_initial, limits.outage_maximum)
        self._limits = limits
        self._backoff = Backoff(limits.backoff_initial, limits.backoff_maximum)
        self._outage = Backoff(lowest, limits.outage_maximum)
        self._failed_at = -math.inf

    def next(self, ending: Ending, lasted: float) -> float:
        """Return how many seconds to wait after a watch that *lasted* so many."""
        answered = ending.reason is Restart.EXPIRED and ending.at_once
        if answered or lasted >= self._limits.healthy_after:
            self._backoff.reset()
            self._outage.reset()
        if ending.at_once:
            return 0.0
        waits = self._outage if self._is_outage(ending.reason) else self._backoff
        return waits.next(ending.retry_after)

    def _is_outage(self, reason: Restart) -> bool:
        """Whether the API server is to be asked again soon, since it is down or just starts."""
        now = time.monotonic()
        if reason in OUTAGE:
            self._failed_at = now
        return now - self._failed_at < self._limits.recovery
