"""Numbers and times that something else writes into annotations of nodes."""

import math
from datetime import UTC, datetime

from moorage.plugin import Scores
from moorage.snapshot import Nodes


def annotated_numbers(nodes: Nodes, name: str) -> Scores:
    """Return the annotation called *name*; NaN where it is not there or not a finite number."""
    return nodes.annotation(name).map(_number)


def annotated_times(nodes: Nodes, name: str) -> Scores:
    """Return the annotation called *name*, a time in RFC 3339, in seconds since 1970; else NaN."""
    return nodes.annotation(name).map(_seconds)


def _number(text: str | None) -> float:
    try:
        value = float(text or "nan")
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _seconds(text: str | None) -> float:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return math.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
