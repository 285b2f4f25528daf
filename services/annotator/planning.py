"""Decides which nodes are worth a write, and what is written. Pure: no clock, no network."""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from moorage.measurements import Layout, Measure
from moorage.measurements.load import MEASURED_AT
from moorage.models import NodeManifest
from moorage.units.durations import format_duration

LONGEST_RATE: Final = 300.0
"""The time, in seconds, over which rates are taken at most: a longer one hides deviations."""

_STEPS: Final = 5
"""How many rates are taken in the time of one."""

_LEAST_RATE: Final = 2.0


def measures(window: float) -> dict[str, Measure]:
    """Return mean and standard deviation over the last *window* seconds, by annotation.

    CPU is in millicores, memory in bytes. CPU time is a counter, so the deviation is one of its
    rates, not of its readings. Nodes that are not measured now
    have none, even if they were measured before.
    """
    rate = min(max(window / 3, _LEAST_RATE), LONGEST_RATE)
    idle = f'rate(node_cpu_seconds_total{{mode="idle"}}[{format_duration(round(rate))}])'
    times = f"[{format_duration(window)}:{format_duration(round(max(rate / _STEPS, 1)))}]"
    found = {}
    for name, function in (("mean", "avg"), ("std", "stddev")):
        over_time = f"({function}_over_time(({{}}){times}) and ({{}}))"
        found[f"{name}-free-cpu"] = Measure(
            series=idle, aggregate="sum", distinct=("cpu",), form=f"1000 * {over_time}"
        )
        found[f"{name}-free-memory"] = Measure(
            series="node_memory_MemAvailable_bytes", form=over_time
        )
    return found


Values = Mapping[str, Mapping[str, float]]
"""By measure, which is an annotation without its prefix, and by the key of the node."""

RESOURCE: Final[Mapping[str, str]] = {
    f"{form}-free-{resource}": resource
    for form in ("mean", "std")
    for resource in ("cpu", "memory")
}
"""The annotations, without prefix, and whose amount each holds."""


class Need(StrEnum):
    """Why a node is written, or why not."""

    NEW = "new"
    CHANGED = "changed"
    AGED = "aged"
    NONE = "unchanged"
    NOT_MEASURED = "not measured"

    @property
    def is_work(self) -> bool:
        """Whether the node is to be written."""
        return self not in (Need.NONE, Need.NOT_MEASURED)


class WriteResult(StrEnum):
    """What became of a node that was to be written."""

    WRITTEN = "written"
    GONE = "gone"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What is to become of one node, and what has.

    Attributes:
        annotations: The values for a merge patch; None removes what is measured no more.
        age: The age of the annotations that it has, in seconds; NaN without a time.
        result: What became of it; None if it was not to be written.
        problem: Why that failed; empty if it did not.
    """

    node: str
    need: Need
    annotations: Mapping[str, str | None]
    age: float
    result: WriteResult | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """The rules.

    Attributes:
        prefix: The prefix of annotation names.
        threshold: The change worth a write, as a share of what is allocatable.
        refresh: The age in seconds at which annotations are written again; each node has its own
            age between 50 % and 100 % of this, so that not all are written at once.
        layout: How Prometheus names nodes.
    """

    prefix: str
    threshold: float
    refresh: float
    layout: Layout

    def plan(self, nodes: Sequence[NodeManifest], values: Values, now: datetime) -> list[Planned]:
        """Return what is to become of each node, in their order."""
        return [self._plan(node, self._measured(node, values), now) for node in nodes]

    def unknown_nodes(self, nodes: Sequence[NodeManifest], values: Values) -> list[str]:
        """Return what Prometheus measures and the cluster does not have, in order."""
        known = {self.layout.key_of_node(node) for node in nodes}
        return sorted({key for measure in values.values() for key in measure} - known)

    def _measured(self, node: NodeManifest, values: Values) -> dict[str, str | None]:
        key = self.layout.key_of_node(node) or ""
        return {name: _text(values.get(name, {}).get(key)) for name in RESOURCE}

    def _plan(self, node: NodeManifest, measured: dict[str, str | None], now: datetime) -> Planned:
        age = _age(node.metadata.annotations.get(self.prefix + MEASURED_AT), now)
        need = Need.NOT_MEASURED
        if any(text is not None for text in measured.values()):
            need = self._need(node, measured, age)
        written = {**measured, MEASURED_AT: now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        return Planned(
            node=node.name,
            need=need,
            annotations={self.prefix + name: text for name, text in written.items()},
            age=age,
        )

    def _need(self, node: NodeManifest, measured: Mapping[str, str | None], age: float) -> Need:
        before = {name: node.metadata.annotations.get(self.prefix + name) for name in measured}
        if math.isnan(age):
            return Need.NEW
        if any(self._differs(node, name, before[name], measured[name]) for name in measured):
            return Need.CHANGED
        # A time in the future is as good as none: another clock was wrong.
        return Need.NONE if 0 <= age < self.refresh * _turn(node.name) else Need.AGED

    def _differs(
        self, node: NodeManifest, name: str, before: str | None, after: str | None
    ) -> bool:
        if before is None or after is None:
            return before is not after
        try:
            change = abs(float(before) - float(after))
        except ValueError:
            return True
        # The form also refuses a change that is no number.
        return not change <= self.threshold * node.allocatable.get(RESOURCE[name], 0)


def _text(amount: float | None) -> str | None:
    return None if amount is None else str(max(round(amount), 0))


def _turn(name: str) -> float:
    """Return a number between 0.5 and 1 that is always the same for a node."""
    return 0.5 + zlib.crc32(name.encode()) / 2**33


def _age(text: str | None, now: datetime) -> float:
    try:
        return (now - datetime.fromisoformat(text or "")).total_seconds()
    except (ValueError, TypeError):  # no time, or one without a zone
        return math.nan
