"""What the binder counts."""

import time
from collections.abc import Callable
from typing import Literal

from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from moorage import Binding
from moorage_host.process.histogram import FastHistogram
from moorage_host.process.metrics import children
from moorage_host.tracing.spans import plugin_span
from services.binder.binding.outcomes import BindError, BindResult, Point, Result, Stage, WaitEnd

BINDS = Counter(
    "moorage_binds_total",
    "Binds that ended: bound, already-bound, or why not.",
    ("outcome",),
)

BIND_SECONDS = FastHistogram(
    "moorage_bind_seconds",
    "Time from the start of a bind to its known outcome, including waiting and retries.",
    buckets=tuple(0.005 * 2**power for power in range(12)),
    registry=REGISTRY,
)

BINDS_RUNNING = Gauge("moorage_binds_running", "Binds under way, including those that wait.")

BIND_RETRIES = Counter(
    "moorage_bind_retries_total",
    "Requests that were sent again: timeout, unreachable, or an HTTP status.",
    ("cause",),
)

PLUGIN_SECONDS = Histogram(
    "moorage_bind_plugin_seconds",
    "Time of a bind plugin at one extension point.",
    ("plugin", "point"),
    buckets=tuple(0.001 * 2**power for power in range(17)),
)

PLUGIN_RESULTS = Counter(
    "moorage_bind_plugin_results_total",
    "Answers of bind plugins, by point and result: ok, wait, refused, failed.",
    ("plugin", "point", "result"),
)

PERMIT_WAITING = Gauge(
    "moorage_permit_waiting", "Binds that wait for others, as Permit plugins want."
)

PERMIT_SECONDS = Histogram(
    "moorage_permit_wait_seconds",
    "Time that binds waited for others, by how that ended: allowed, refused, failed, timeout, "
    "ended (the binder ended), fenced (a higher epoch).",
    ("end",),
    buckets=tuple(0.01 * 2**power for power in range(13)),
)

TOGETHER = Counter(
    "moorage_binds_together_total",
    "Binds that Permit plugins let go on together: bound, given-up (none was written), failed "
    "(others may have been written).",
    ("outcome",),
)

EPOCH = Gauge("moorage_epoch", "Highest epoch of a gateway that this binder has seen.")

FENCED = Counter(
    "moorage_binds_fenced_total",
    "Binds of a lower epoch: arrival (refused), waiting (given up).",
    ("stage",),
)

BARRIER_SECONDS = Histogram(
    "moorage_barrier_seconds",
    "Time of barriers: held (the caller has the highest epoch) or lost.",
    ("result",),
    buckets=tuple(0.001 * 2**power for power in range(16)),
)

EVENTS = Counter(
    "moorage_events_total",
    "Kubernetes Events: written, dropped (too many waited), failed.",
    ("result",),
)

_ended = children(BINDS)
_bind_seconds = BIND_SECONDS.observer()


class BindMetrics:
    """Counts binds."""

    def show_running(self, count: Callable[[], int]) -> None:
        """Have *count* return how many binds are under way."""
        BINDS_RUNNING.set_function(count)

    def retried(self, cause: str) -> None:
        """Count a request that is sent again."""
        BIND_RETRIES.labels(cause).inc()

    def plugin_ran(self, plugin: str, point: Point, result: Result, seconds: float) -> None:
        """Count what a plugin did at a point."""
        PLUGIN_SECONDS.labels(plugin, point).observe(seconds)
        PLUGIN_RESULTS.labels(plugin, point, result).inc()
        error = result if result == "failed" else ""
        about = {"moorage.point": point, "moorage.result": result}
        plugin_span(plugin, time.perf_counter() - seconds, seconds, error, about)

    def waiting(self, change: int) -> None:
        """Count binds that wait for others."""
        PERMIT_WAITING.inc(change)

    def waited(self, end: WaitEnd, seconds: float) -> None:
        """Count a bind that waited for others."""
        PERMIT_SECONDS.labels(end).observe(seconds)

    def together(self, outcome: Literal["bound", "given-up", "failed"]) -> None:
        """Count a bind that went on with others."""
        TOGETHER.labels(outcome).inc()

    def epoch_raised(self, epoch: int) -> None:
        """Show the highest epoch."""
        EPOCH.set(epoch)

    def fenced(self, stage: Stage) -> None:
        """Count a bind of a lower epoch."""
        FENCED.labels(stage).inc()

    def barrier(self, seconds: float, *, is_held: bool) -> None:
        """Count a barrier."""
        BARRIER_SECONDS.labels("held" if is_held else "lost").observe(seconds)

    def on_bind_end(self, binding: Binding, result: BindResult | BindError, seconds: float) -> None:
        """Count how a bind ended."""
        outcome = result.reason if isinstance(result, BindError) else result
        _ended(outcome.value).inc()
        _bind_seconds(seconds)

    def event(self, result: Literal["written", "dropped", "failed"]) -> None:
        """Count what became of an Event; dropped means that too many were waiting."""
        EVENTS.labels(result).inc()
