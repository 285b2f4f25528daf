"""The clock of plugins, which tests set by `moorage.testing.time_is`."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

_set: list[datetime] = []


def now() -> datetime:
    """Return the time in UTC."""
    return _set[-1] if _set else datetime.now(UTC)


@contextmanager
def time_is(time: str | datetime) -> Iterator[None]:
    """Have `self.now()` of all plugins return *time* within the block, in every thread.

    Such as `with time_is("2026-11-27T22:00Z"):`. Intervals of `self.poll` go on as ever.

    Raises:
        ValueError: The text is no time in ISO 8601, or the time has no zone.
    """
    moment = datetime.fromisoformat(time) if isinstance(time, str) else time
    if moment.tzinfo is None:
        raise ValueError(f"{time} has no time zone: add Z for UTC")
    _set.append(moment.astimezone(UTC))
    try:
        yield
    finally:
        _set.pop()
