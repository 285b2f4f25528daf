"""Numbers and times that something else writes into annotations of nodes."""

import math
import time
from datetime import UTC, datetime

import numpy as np

from moorage.plugin.normalization import Scores
from moorage.snapshot import Nodes
from moorage.units.durations import format_duration


def annotated_numbers(nodes: Nodes, name: str) -> Scores:
    """Return the annotation called *name*; NaN where it is not there or not a finite number."""
    return nodes.annotation(name).map(_number)


def annotated_times(nodes: Nodes, name: str) -> Scores:
    """Return the annotation called *name*, a time in RFC 3339, in seconds since 1970; else NaN."""
    return nodes.annotation(name).map(_seconds)


def trouble_with_times(nodes: Nodes, name: str, max_age: float) -> str:
    """Return how long ago the times in an annotation are, if that is long; empty if not.

    Long is more than *max_age* seconds for one of *nodes*, or 50 % of that for all.
    """
    ages = time.time() - annotated_times(nodes, name)
    newest = float(np.fmin.reduce(ages, initial=math.inf))
    if math.isinf(newest):
        return ""
    ago = f"{format_duration(max(round(newest), 0))} ago"
    if old := np.count_nonzero(ages > max_age):
        return f"{name} of {old} is over {format_duration(max_age)} ago, the newest {ago}"
    return f"the newest {name} is {ago}" if newest > max_age / 2 else ""


def _number(text: str | None) -> float:
    try:
        value = float(text or "nan")
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _seconds(text: str | None) -> float:
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return math.nan
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
