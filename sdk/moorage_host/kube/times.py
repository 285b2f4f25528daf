"""Kubernetes' notation of time."""

from datetime import UTC, datetime


def micro_time(time: datetime) -> str:
    """Write a time as a MicroTime, always with six digits: the API server refuses fewer."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
