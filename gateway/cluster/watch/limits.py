"""The limits of a reflector, and what it reports to be counted."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


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
    """The answer is no JSON of Kubernetes': a new list is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorLimits:
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
    """Waits grow up to this while the API server is unreachable or fails."""
    recovery: float = 30.0
    """So long after that a refusal counts as part of the outage: a server that starts refuses a
    request whose permissions it has not read yet."""
    bookmark_lag: float = 30.0
    """What a bookmark announces is taken for no older than this."""
    healthy_after: float = 120.0
    """A watch that lasted this long makes waits short again."""


class Observer(Protocol):
    """Counts what reflectors do."""

    def received(self, event: str, /) -> None:
        """Note an event by its type: "ADDED", "MODIFIED", "DELETED", "BOOKMARK" or "ERROR"."""

    def restarted(self, reason: Restart, /) -> None:
        """Note that a watch ended."""
