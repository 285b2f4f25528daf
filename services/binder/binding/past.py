"""What a bind leaves open for the next attempt of the same pod."""

from collections import OrderedDict
from dataclasses import dataclass

LONGEST_WAIT = 600.0
"""Seconds for which the API server's Retry-After is kept; a longer one is taken for a mistake."""

MOST_PODS = 4096
"""Pods whose past is kept; the oldest is forgotten first, which costs one request at most."""


@dataclass(slots=True)
class Past:
    """What is known of a pod from the requests so far.

    Attributes:
        node: Where a request without a known outcome may have bound the pod, or may still bind it.
        not_before: When the API server takes the next request, on the monotonic clock.
    """

    node: str = ""
    not_before: float = 0.0

    def wait(self, now: float, seconds: float | None) -> None:
        """Keep what the API server asks for with Retry-After."""
        if seconds:
            self.not_before = max(self.not_before, now + min(seconds, LONGEST_WAIT))


class Pasts:
    """The pods whose last attempt left something open."""

    def __init__(self) -> None:
        self._by_uid: OrderedDict[str, Past] = OrderedDict()

    def take(self, uid: str) -> Past:
        """Return the past of a pod, which is kept no longer."""
        return self._by_uid.pop(uid, None) or Past()

    def keep(self, uid: str, past: Past, now: float) -> None:
        """Keep the past of a pod until its next attempt, if there is anything to know."""
        if not past.node and past.not_before <= now:
            return
        self._by_uid[uid] = past
        if len(self._by_uid) > MOST_PODS:
            self._by_uid.popitem(last=False)
