"""The metrics that all processes have, and helpers for those of each.

Names start with `moorage_`, except for those of gRPC and of the process itself, where dashboards
expect the usual ones. Labels never hold names of nodes or pods. All metrics are in the registry of
prometheus_client itself.
"""

import asyncio
import functools
import gc
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from typing import Any, TypeVar

from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from moorage import __version__
from moorage_host.process.histogram import FastHistogram

MetricT = TypeVar("MetricT", bound=MetricWrapperBase)

CALLS = Counter(
    "grpc_server_handled_total",
    "Calls that ended, by status code.",
    ("grpc_service", "grpc_method", "grpc_code"),
)

CALL_SECONDS = Histogram(
    "grpc_server_handling_seconds",
    "Time from the start of a call to its end; for a stream, the time that it was open.",
    ("grpc_service", "grpc_method"),
    buckets=tuple(0.0005 * 2**power for power in range(15)),
)

BACKGROUND_FAILURES = Counter(
    "moorage_background_failures_total",
    "Failures of background work of plugins.",
    ("plugin",),
)

BUILD_INFO = Gauge(
    "moorage_build_info",
    "Always 1; the labels name what is running.",
    ("service", "version", "revision", "python", "grpc"),
)


def _tasks() -> float:
    """Return how many tasks this thread's event loop has, if there is one."""
    with suppress(RuntimeError):
        return float(len(asyncio.all_tasks()))
    return 0.0


TASKS = Gauge("moorage_tasks", "Tasks of the event loop that have not ended.")
TASKS.set_function(_tasks)


def show_build(service: str) -> None:
    """Set `moorage_build_info` for this process."""
    grpc = version("grpcio")  # not imported here: moorage_host.rpc sets how it works before
    BUILD_INFO.labels(service, __version__, revision(), platform.python_version(), grpc).set(1)


def revision() -> str:
    """Return the commit that the image was built from, as its build sets it; "" elsewhere."""
    return os.environ.get("MOORAGE_REVISION", "")


def count_background_failure(plugin: str) -> None:
    """Count that background work of a plugin has failed."""
    BACKGROUND_FAILURES.labels(plugin).inc()


def children(metric: MetricT) -> Callable[..., MetricT]:
    """Return a faster `metric.labels`, with a cache; give label values in order."""
    return functools.cache(metric.labels)


BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Upper bounds of the histogram's buckets, in seconds."""

GENERATIONS = 3


class GarbagePauses:
    """Measures the pauses of this process."""

    def __init__(self) -> None:
        """Begin to measure."""
        self._began = 0.0
        self.histogram = FastHistogram(
            "moorage_gc_pause_seconds",
            "Pauses for Python's garbage collector; generation 2 looks at everything.",
            ["generation"],
            buckets=BOUNDS,
            registry=REGISTRY,
        )
        self._observe = [self.histogram.observer(str(each)) for each in range(GENERATIONS)]
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, Any]) -> None:
        now = time.perf_counter()
        if phase == "start":
            self._began = now
        elif self._began:  # it may have begun before this did
            self._observe[info["generation"]](now - self._began)


PAUSES = GarbagePauses()
