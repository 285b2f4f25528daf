"""What a bind leaves open for the next attempt of the same pod."""

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PastLimits:
    """How much to keep of attempts that failed."""

    pods: int = 4096
    """Pods whose past is kept; the oldest is forgotten first, which costs one request at most."""
    longest_wait: float = 600.0
    """Seconds for which Retry-After is kept; a longer one is taken for a mistake."""


@dataclass(slots=True)
class Past:
    """What is known of a pod from the requests so far.

    Attributes:
        node: Where a request without a known outcome may have bound the pod, or may still bind it.
        not_before: When the API server takes the next request, on the monotonic clock.
        longest_wait: How far that may be in the future, in seconds.
    """

    longest_wait: float = 600.0
    node: str = ""
    not_before: float = 0.0

    def wait(self, now: float, seconds: float | None) -> None:
        """Keep what the API server asks for with Retry-After."""
        if seconds:
            self.not_before = max(self.not_before, now + min(seconds, self.longest_wait))


class Pasts:
    """The pods whose last attempt left something open."""

    def __init__(self, limits: PastLimits) -> None:
        self._limits = limits
        self._by_uid: OrderedDict[str, Past] = OrderedDict()

    def take(self, uid: str) -> Past:
        """Return the past of a pod, which is kept no longer."""
        return self._by_uid.pop(uid, None) or Past(self._limits.longest_wait)

    def keep(self, uid: str, past: Past, now: float) -> None:
        """Keep the past of a pod until its next attempt, if there is anything to know."""
        if not past.node and past.not_before <= now:
            return
        self._by_uid[uid] = past
        if len(self._by_uid) > self._limits.pods:
            self._by_uid.popitem(last=False)
