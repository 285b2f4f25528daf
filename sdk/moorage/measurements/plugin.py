"""What plugins that measure nodes share: notes about nodes without measurements, and their scores.

Scores are gathered from several replicas before they are normalised, and must be numbers. So a
plugin scores such nodes `MISSING`, and `normalize` settles what that means among the others.
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

import numpy as np

from moorage.errors import MoorageError
from moorage.plugin.clock import now
from moorage.plugin.hooks import Plugin
from moorage.plugin.normalization import MAX_SCORE, Scores
from moorage.snapshot import Nodes
from moorage.snapshot.verdicts import Mask
from moorage.units.durations import format_duration


class PrometheusError(MoorageError):
    """Prometheus did not answer a query, or not with what was asked for; see the message."""


class NoMeasurementsError(MoorageError):
    """A plugin has nothing to judge nodes by; equal causes give equal messages."""


OnMissing = Literal["neutral", "worst", "fail"]
"""Nodes without measurements get the mean of the others' scores, or 0, or the plugin fails."""

MISSING: Final = -1.0
"""The score, before normalisation, of nodes without measurements; real ones are not negative."""


MAX_AHEAD: Final = 10.0
"""Seconds by which the clock of whoever measures may be ahead of ours."""

_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII
)
"""RFC 3339, also without a zone: that is UTC."""


def mark_missing(scores: Scores, on_missing: str) -> Scores:
    """Return *scores* with `MISSING` in place of NaN.

    Raises:
        NoMeasurementsError: There is a NaN, and *on_missing* is "fail".
    """
    missing = np.isnan(scores)
    if on_missing == "fail" and missing.any():
        raise NoMeasurementsError("there are nodes without measurements")
    return np.where(missing, MISSING, scores)


def fill_missing(
    scores: Scores, on_missing: str, normalize: Callable[[Scores], Scores] = lambda x: x
) -> Scores:
    """Normalise the scores of nodes that have one, and fill in those of the others.

    If no node has one, all are alike.
    """
    known = scores != MISSING
    filled = np.zeros(len(scores))
    if known.any():
        filled[known] = normalize(scores[known])
    if on_missing != "worst":
        filled[~known] = filled[known].mean() if known.any() else MAX_SCORE / 2
    return filled


def annotated_numbers(nodes: Nodes, name: str) -> Scores:
    """Return the annotation called *name*; NaN where it is not there or not a finite number."""
    return nodes.annotation(name).map(_number)


def annotated_ages(nodes: Nodes, name: str) -> Scores:
    """Return how many seconds ago the times in the annotation called *name* are.

    NaN where it is not there, infinite where it is no time in RFC 3339, and below 0 in the future.
    """
    ages: Scores = now().timestamp() - nodes.annotation(name).map(_seconds)
    return ages


def count_in_time(ages: Scores, max_age: float) -> Mask:
    """Return which ages count: not too old, not unreadable, not in the future; or not there."""
    in_time: Mask = ~((ages > max_age) | (ages < -MAX_AHEAD))
    return in_time


def trouble_with_times(nodes: Nodes, name: str, max_age: float) -> str:
    """Return which times in an annotation do not count, and how long ago the newest is; else "".

    If all count, their age is trouble from half of *max_age* seconds on.
    """
    ages = annotated_ages(nodes, name)
    unreadable, future = np.isinf(ages), ages < -MAX_AHEAD
    parts = [
        f"{name} of {np.count_nonzero(found)} {what}, such as {_first(nodes, name, found)}"
        for found, what in ((unreadable, "is no time in RFC 3339"), (future, "is in the future"))
        if found.any()
    ]
    newest = float(np.fmin.reduce(ages[~unreadable & ~future], initial=math.inf))
    if not math.isinf(newest):
        ago = f"{format_duration(max(round(newest), 0))} ago"
        if old := np.count_nonzero((ages > max_age) & ~unreadable):
            parts.append(
                f"{name} of {old} is over {format_duration(max_age)} ago, the newest {ago}"
            )
        elif newest > max_age / 2:
            parts.append(f"the newest {name} is {ago}")
    return "; ".join(parts)


def _first(nodes: Nodes, name: str, found: Mask) -> str:
    """Return the text of the first node that was found, as far as it is short."""
    node = nodes[int(found.argmax())]
    return f"{node.annotations.get(name, '')[:40]!r} on {node.name}"


def _number(text: str | None) -> float:
    try:
        value = float(text or "nan")
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _seconds(text: str | None) -> float:
    if text is None:
        return math.nan
    try:
        time = datetime.fromisoformat(text.upper()) if _TIME.fullmatch(text) else None
    except ValueError:  # such as the 30th of February
        time = None
    if time is None:
        return -math.inf
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


class Source(Protocol):
    """Something that asks in the background, such as a `PrometheusSource`."""

    async def start(self) -> None:
        """Begin to ask."""

    async def stop(self) -> None:
        """Ask no more."""

    def trouble(self, nodes: Nodes, missing: Mask) -> str:
        """Return how old measurements are if that is older than usual, and why *missing* ones are.

        Empty if all is well, or if nothing is known but that they are missing.
        """


class MeasuringPlugin(Plugin):
    """A plugin whose source lives as long as it does; to be mixed in before the kind of plugin.

    Its `__init__` sets `source`; None if there is nothing to ask. It is not declared here, so that
    it has the type of what is set.
    """

    async def start(self) -> None:
        """Begin to ask."""
        if source := self._source:
            await source.start()

    async def stop(self) -> None:
        """Ask no more."""
        if source := self._source:
            await source.stop()

    def note_missing(
        self, nodes: Nodes, values: Scores, on_missing: str, *, expected: bool = False
    ) -> None:
        """Note how many of *nodes* have no measurements, and what is known about that.

        Args:
            nodes: The nodes.
            values: What was measured, with NaN where nothing was.
            on_missing: What the policy makes of such nodes.
            expected: Some have none even if all is well, so that this alone is no note.
        """
        missing = np.isnan(values)
        trouble = self._source.trouble(nodes, missing) if self._source else ""
        counted = missing.any() and (trouble or not expected)
        parts = [_count(nodes, missing, on_missing)] if counted else []
        if trouble:
            parts.append(trouble)
        if parts:
            self.note("; ".join(parts))

    @property
    def _source(self) -> Source | None:
        source: Source | None = getattr(self, "source", None)
        return source


def _count(nodes: Nodes, missing: Mask, on_missing: str) -> str:
    example = "" if missing.all() else f", such as {nodes.name(int(missing.argmax()))}"
    count = f"{np.count_nonzero(missing)} of {len(nodes)}"
    return f"{count} nodes have no measurements{example} (onMissing: {on_missing})"
