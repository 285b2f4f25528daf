"""Why a watch ended, and when the next one begins: waits grow while watches fail.

They grow less in an outage, so that objects are right soon after it.
"""

import math
import time
from dataclasses import dataclass
from enum import StrEnum

from moorage.backoff import Backoff
from moorage_host.kube import UNREADABLE, KubeAnswerError, KubeStatusError, KubeUnreachableError


class Restart(StrEnum):
    """Why a watch ended."""

    CLOSED = "closed"
    """The server ended it, as it does every few minutes."""
    SILENT = "silent"
    """Nothing was heard for too long."""
    UNREACHABLE = "unreachable"
    """The connection failed or broke."""
    EXPIRED = "expired"
    """The resource version is too old, or unknown after a restore: a new list is taken."""
    THROTTLED = "throttled"
    """The server has too much to do."""
    REFUSED = "refused"
    """The server does not want it: credentials, permissions, a wrong path."""
    NOT_SERVED = "not-served"
    """The server does not have the kind, which is optional: its objects are taken for none."""
    SERVER_ERROR = "server-error"
    """The server failed."""
    NO_STREAMED_LIST = "no-streamed-list"
    """The server cannot stream lists: LIST is used from now on."""
    RELISTED = "relisted"
    """A gateway that takes over needs a newer state: a new list is taken."""
    MALFORMED = "malformed"
    """The answer is no JSON of Kubernetes', or not in the order of versions, or about what was
    never added: a new list is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLimits:
    """How long a reflector waits; all times in seconds."""

    silence: float = 120.0
    """The longest time without a line; the API server sends a bookmark about every minute."""
    initial_events: float = 30.0
    """Time for a streamed list to complete; after that LIST is used for good."""
    list_timeout: float = 60.0
    """Time for one page of a LIST."""
    page_size: int = 500
    """Objects in one page of a LIST."""
    watch_life: float = 300.0
    """How long a watch is asked to last, up to twice as long, so that servers get rebalanced."""
    backoff_initial: float = 0.8
    """The first wait before a new try is between 0 and this."""
    backoff_maximum: float = 30.0
    """Waits grow up to this."""
    outage_maximum: float = 1.0
    """Waits grow up to this while the API server is unreachable, fails or lies, so that objects
    are right soon after; longer only if it is busy or refuses."""
    recovery: float = 30.0
    """So long after that a refusal counts as part of the outage: a server that starts refuses a
    request whose permissions it has not read yet."""
    bookmark_lag: float = 30.0
    """What a bookmark announces is taken for no older than this."""
    healthy_after: float = 120.0
    """A watch that lasted this long makes waits short again."""


class EndlessListError(Exception):
    """The server does not end the initial events of a watch."""


FAILURES = (
    KubeAnswerError,
    KubeStatusError,
    KubeUnreachableError,
    TimeoutError,
    *UNREADABLE,
    EndlessListError,
)
"""What ends a watch: how the server fails, what it sends, or its silence."""


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


_OUTAGE = frozenset(
    (
        Restart.CLOSED,
        Restart.SILENT,
        Restart.UNREACHABLE,
        Restart.EXPIRED,
        Restart.SERVER_ERROR,
        Restart.MALFORMED,
    )
)


class Waits:
    """The waits between watches: they grow while watches fail, though less in an outage."""

    def __init__(self, limits: WatchLimits) -> None:
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
        now = time.monotonic()
        if ending.reason in _OUTAGE:
            self._failed_at = now
        # The API server is to be asked again soon if it is down, or just starts.
        is_outage = now - self._failed_at < self._limits.recovery
        return (self._outage if is_outage else self._backoff).next(ending.retry_after)
