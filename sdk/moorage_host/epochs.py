"""Which numbers of terms a gateway may write: what is far beyond would end them for all others."""

import time

AHEAD = 366 * 24 * 3600 * 1000
"""Epochs begin as the time in milliseconds; one further ahead of this clock, a year, is refused."""


def highest_epoch() -> int:
    """Return the highest epoch that is plausible now."""
    return time.time_ns() // 1_000_000 + AHEAD
