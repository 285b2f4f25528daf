"""Builds one query for all nodes out of what a plugin wants to know of each.

Plugins declare `Measure`s without knowing how an installation names nodes; the layout adds that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from moorage.measurements.prometheus.layouts import Layout
from moorage.units.durations import format_duration

MEASURE_LABEL: Final = "moorage_measure"
"""Distinguishes the measures of one answer."""

LATE: Final = 300.0
"""After how many seconds without a reading a counter has no rate any more: Prometheus' own limit
for looking back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One number for each node.

    Attributes:
        series: PromQL of series of nodes, such as rates by device, with all labels that they have.
        aggregate: How several series of a node become one.
        distinct: The labels by which the series of a node differ. Series that agree in them are
            the same thing measured twice, as by a pair of servers: the largest counts.
        form: What to make of the node's number, with {} in its place.
    """

    series: str
    aggregate: Literal["sum", "avg", "max"] = "avg"
    distinct: tuple[str, ...] = ()
    form: str = "{}"

    def text(self, layout: Layout) -> str:
        """Return the query."""
        joined = f"({self.series}) {layout.join}".rstrip()
        if self.distinct:
            joined = f"max by ({', '.join((layout.label, *self.distinct))}) ({joined})"
        return self.form.replace("{}", f"{self.aggregate} by ({layout.label}) ({joined})")


def query_text(measures: Mapping[str, Measure], layout: Layout) -> str:
    """Return one query for all *measures*, whose names come back in `MEASURE_LABEL`."""
    parts = (
        f'label_replace({measure.text(layout)}, "{MEASURE_LABEL}", "{name}", "__name__", "")'
        for name, measure in measures.items()
    )
    return " or ".join(parts)


def rate(counters: str, seconds: float) -> str:
    """Return PromQL of the rates of *counters* over so many seconds.

    Those without a recent reading have none, however long the time.
    """
    text = f"rate({counters}[{time_range(seconds)}])"
    if seconds <= LATE:
        return text
    return f"({text} and last_over_time({counters}[{time_range(LATE)}]))"


def time_range(seconds: float) -> str:
    """Return a time as PromQL has it, which knows no fractions: in whole seconds, at least one."""
    return format_duration(max(round(seconds), 1))


def quoted(text: str) -> str:
    """Return *text* as a string of PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
