"""Kubernetes' notation of time."""

from datetime import UTC, datetime


def micro_time(moment: datetime) -> str:
    """Write a moment as a MicroTime, always with six digits: the API server refuses fewer."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
