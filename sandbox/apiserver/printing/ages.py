"""Ages as kubectl shows them."""

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
    minutes, hours, days, years = (
        seconds // 60,
        seconds // 3600,
        seconds // 86400,
        seconds // 86400 // 365,
    )
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if years < 2:
        return f"{days}d"
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"
