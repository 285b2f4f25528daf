"""Time as Kubernetes writes it."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Write a time as metadata carries it, in whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
