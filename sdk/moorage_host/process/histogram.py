"""Histograms for hot paths.

prometheus_client's look through all their buckets and take two locks for each value; a cycle has
more than a dozen values. These are exposed the same. Values are observed by one thread only.

A value may be given as an example of its bucket (an exemplar of OpenMetrics), with what leads from
it to its cause.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar, Sample
from prometheus_client.utils import floatToGoString

Observe = Callable[..., None]
"""Takes a value and, if it is an example of its bucket, what leads from it to its cause."""

_NOWHERE: Mapping[str, str] = {}


class FastHistogram(Collector):
    """Counts values by the first bucket whose upper bound is not below them."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        """Have *buckets*, the upper bounds in ascending order, and one for all that is above."""
        self._name = name
        self._documentation = documentation
        self._labelnames = tuple(labels)
        self._bounds = tuple(map(float, buckets))
        self._children: dict[tuple[str, ...], _Child] = {}
        registry.register(self)

    def observer(self, *labels: str) -> Observe:
        """Return what takes a value, for the values of all labels."""
        if labels not in self._children:
            named = dict(zip(self._labelnames, labels, strict=True))
            self._children[labels] = _Child(self._name, named, self._bounds)
        return self._children[labels].observe

    def describe(self) -> Iterable[HistogramMetricFamily]:
        """Return its name, by which a registry finds it."""
        return [HistogramMetricFamily(self._name, self._documentation, labels=self._labelnames)]

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """Return all children."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labelnames)
        for child in self._children.values():
            family.samples += child.samples()
        return [family]


class _Child:
    __slots__ = ("_bounds", "_examples", "_series", "counts", "sum")

    def __init__(self, name: str, labels: Mapping[str, str], bounds: Sequence[float]) -> None:
        self._bounds = bounds
        upper = map(floatToGoString, (*bounds, math.inf))
        self._series = [
            *((f"{name}_bucket", {**labels, "le": bound}) for bound in upper),
            (f"{name}_count", dict(labels)),
            (f"{name}_sum", dict(labels)),
        ]
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self._examples: dict[int, tuple[Mapping[str, str], float, float]] = {}

    def observe(self, value: float, exemplar_labels: Mapping[str, str] = _NOWHERE) -> None:
        self.sum += value
        bucket = bisect_left(self._bounds, value)
        self.counts[bucket] += 1
        if exemplar_labels:
            self._examples[bucket] = exemplar_labels, value, time.time()

    def samples(self) -> Iterable[Sample]:
        counts = list(map(float, accumulate(self.counts)))
        values = (*counts, counts[-1], self.sum)
        return [
            Sample(*one, value, exemplar=self._example(index))
            for index, (one, value) in enumerate(zip(self._series, values, strict=True))
        ]

    def _example(self, bucket: int) -> Exemplar | None:
        example = self._examples.get(bucket)
        return Exemplar(dict(example[0]), example[1], example[2]) if example else None
