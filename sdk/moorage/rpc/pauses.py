"""Tells how long a process stands still for Python's garbage collector; for every process.

The collector may run at any moment, even while a metric is locked: so this counts by itself, and
makes metrics of it only when Prometheus asks.
"""

import gc
import time
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Upper bounds of the histogram's buckets, in seconds."""

GENERATIONS = 3


class GarbagePauses(Collector):
    """The pauses since it was made."""

    _labelnames = ("generation",)

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        """Begin to count, and tell *registry*."""
        self._began = 0.0
        self._counts = [[0] * (len(BOUNDS) + 1) for _ in range(GENERATIONS)]
        self._seconds = [0.0] * GENERATIONS
        gc.callbacks.append(self._note)
        registry.register(self)

    def stop(self) -> None:
        """Count no more."""
        gc.callbacks.remove(self._note)

    def collect(self) -> Iterator[Metric]:
        """Return the histogram."""
        family = HistogramMetricFamily(
            "moorage_gc_pause_seconds",
            "Time that the process stood still for Python's garbage collector; generation 2 looks "
            "at everything.",
            labels=self._labelnames,
        )
        bounds = [*map(str, BOUNDS), "+Inf"]
        for generation, counts in enumerate(self._counts):
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric([str(generation)], buckets, self._seconds[generation])
        yield family

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        now = time.perf_counter()
        if phase == "start":
            self._began = now
        elif self._began:  # it may have begun before this did
            seconds, generation = now - self._began, info["generation"]
            self._counts[generation][bisect_left(BOUNDS, seconds)] += 1
            self._seconds[generation] += seconds


PAUSES = GarbagePauses()
