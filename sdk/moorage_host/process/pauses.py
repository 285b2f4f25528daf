"""Measures how long Python's garbage collector stops a process; for every process.

The collector may run at any moment, even while a metric is locked: so this counts without locks.
"""

import gc
import time
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry

from moorage_host.process.histogram import FastHistogram

BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Upper bounds of the histogram's buckets, in seconds."""

GENERATIONS = 3


class GarbagePauses:
    """Measures the pauses of this process.

    Attributes:
        histogram: Exposes them to Prometheus.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        """Begin to measure, and register the histogram in *registry*."""
        self._began = 0.0
        self.histogram = FastHistogram(
            "moorage_gc_pause_seconds",
            "Time that the process stood still for Python's garbage collector; generation 2 looks "
            "at everything.",
            ["generation"],
            buckets=BOUNDS,
            registry=registry,
        )
        self._observe = [self.histogram.observer(str(each)) for each in range(GENERATIONS)]
        gc.callbacks.append(self._note)

    def stop(self) -> None:
        """Stop measuring."""
        gc.callbacks.remove(self._note)

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        now = time.perf_counter()
        if phase == "start":
            self._began = now
        elif self._began:  # it may have begun before this did
            self._observe[info["generation"]](now - self._began)


PAUSES = GarbagePauses()
