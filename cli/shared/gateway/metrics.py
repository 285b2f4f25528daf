"""Reads Prometheus' text format, and what happened between two readings of it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The metrics of one time.

    Attributes:
        time: When they were read, in seconds on a monotonic clock.
        values: By name and labels.
    """

    time: float
    values: Mapping[tuple[str, Labels], float]


def sample(text: str, time: float, names: tuple[str, ...] = ("moorage_",)) -> Sample:
    """Return the metrics in *text* whose names begin with one of *names*.

    Raises:
        ValueError: It is not in Prometheus' text format.
    """
    lines = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(names))
    values = {
        (each.name, frozenset(each.labels.items())): each.value
        for family in text_string_to_metric_families(lines)
        for each in family.samples
    }
    return Sample(time=time, values=values)


class Change:
    """What happened between two samples; a gateway that restarted meanwhile began at 0."""

    def __init__(self, before: Sample, after: Sample) -> None:
        self._before = before.values
        self._after = after.values
        self.seconds = max(after.time - before.time, 1e-9)

    def now(self, name: str, **labels: str) -> float:
        """Return the newest value of a gauge, 0 if there is none."""
        return self._after.get((name, frozenset(labels.items())), 0.0)

    def grown(self, name: str, **labels: str) -> float:
        """Return by how much counters with these labels have grown, whatever else they have."""
        wanted = frozenset(labels.items())
        return sum(self._grown(key) for key in self._after if key[0] == name and wanted <= key[1])

    def rate(self, name: str, **labels: str) -> float:
        """Return the same for each second."""
        return self.grown(name, **labels) / self.seconds

    def values_of(self, name: str, *labels: str) -> list[tuple[str, ...]]:
        """Return the values of *labels* that a metric has, in order."""
        found = {
            tuple(dict(key[1]).get(label, "") for label in labels)
            for key in self._after
            if key[0] == name
        }
        return sorted(found)

    def mean(self, name: str, **labels: str) -> float | None:
        """Return the mean of what a histogram has observed meanwhile; None if nothing."""
        count = self.grown(f"{name}_count", **labels)
        return self.grown(f"{name}_sum", **labels) / count if count else None

    def quantile(self, share: float, name: str, **labels: str) -> float | None:
        """Return a quantile of the same, as Prometheus estimates it from the buckets."""
        buckets = self._buckets(f"{name}_bucket", frozenset(labels.items()))
        total = buckets.get(math.inf, 0.0)
        if not total:
            return None
        wanted, below, before = share * total, 0.0, 0.0
        for bound, count in sorted(buckets.items()):
            if count >= wanted:
                if bound == math.inf:
                    return below
                inside = count - before
                return below + (bound - below) * ((wanted - before) / inside if inside else 1.0)
            below, before = bound, count
        return below

    def _buckets(self, name: str, wanted: Labels) -> dict[float, float]:
        found: dict[float, float] = {}
        for key, bound in self._bounds(name, wanted):
            found[bound] = found.get(bound, 0.0) + self._grown(key)
        return found

    def _bounds(self, name: str, wanted: Labels) -> Iterator[tuple[tuple[str, Labels], float]]:
        for key in self._after:
            if key[0] == name and wanted <= key[1]:
                yield key, float(dict(key[1])["le"])

    def _grown(self, key: tuple[str, Labels]) -> float:
        after, before = self._after[key], self._before.get(key, 0.0)
        return after - before if after >= before else after
