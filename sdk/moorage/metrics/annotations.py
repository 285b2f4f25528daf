"""Numbers that something else writes into annotations of nodes."""

import math

from moorage.plugin import Scores
from moorage.snapshot import Nodes


def annotated_numbers(nodes: Nodes, name: str) -> Scores:
    """Return the annotation called *name*; NaN where it is not there or not a finite number."""
    return nodes.annotation(name).map(_number)


def _number(text: str | None) -> float:
    try:
        value = float(text or "nan")
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
