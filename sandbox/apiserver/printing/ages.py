"""Ages as kubectl shows them."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime


def age(text: str | None, present: datetime) -> str:
    """Return how long ago a timestamp was, in kubectl's short form; <unknown> without one."""
    if not text:
        return "<unknown>"
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return "<invalid>"
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return short(int((present - then).total_seconds()))


def short(seconds: int) -> str:
    """Write a duration in one or two units, coarser as it grows: 95s, 5m30s, 3h5m, 4d, 2y10d."""
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    _, big, small = next(step for step in _STEPS if seconds < step[0])
    rest = seconds % _UNITS[big] // _UNITS[small] if small else 0
    return f"{seconds // _UNITS[big]}{big}" + (f"{rest}{small}" if rest else "")


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "y": 365 * 86_400}
_STEPS: Sequence[tuple[float, str, str]] = (
    (120, "s", ""), (600, "m", "s"), (3 * 3600, "m", ""), (8 * 3600, "h", "m"),
    (48 * 3600, "h", ""), (8 * 86_400, "d", "h"), (2 * _UNITS["y"], "d", ""),
    (8 * _UNITS["y"], "y", "d"), (math.inf, "y", ""),
)  # fmt: skip
"""Up to how many seconds a duration is written in which units."""
