"""The metrics that all processes have, and helpers for those of each.

Names start with `moorage_`, except for gRPC's and the process's own, where dashboards expect the
usual ones. Labels never hold names of nodes or pods. All metrics are in prometheus_client's own
registry.
"""

import functools
import os
import platform
from collections.abc import Callable
from typing import TypeVar

import grpc
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from moorage import __version__

MetricT = TypeVar("MetricT", bound=MetricWrapperBase)

CALLS = Counter(
    "grpc_server_handled_total",
    "Calls that ended, by status code; calls of methods that do not exist count as unknown.",
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
    "Failures of background work of plugins, each of which was followed by another try.",
    ("plugin",),
)

BUILD_INFO = Gauge(
    "moorage_build_info",
    "Always 1; the labels name what is running.",
    ("service", "version", "revision", "python", "grpc"),
)


def show_build(service: str) -> None:
    """Set `moorage_build_info` for this process."""
    BUILD_INFO.labels(
        service, __version__, revision(), platform.python_version(), grpc.__version__
    ).set(1)


def revision() -> str:
    """Return the commit that the image was built from, as its build sets it; "" elsewhere."""
    return os.environ.get("MOORAGE_REVISION", "")


def count_background_failure(plugin: str) -> None:
    """Count that background work of a plugin has failed."""
    BACKGROUND_FAILURES.labels(plugin).inc()


def children(metric: MetricT) -> Callable[..., MetricT]:
    """Return a faster `metric.labels`, with a cache; give label values in order."""
    return functools.cache(metric.labels)
