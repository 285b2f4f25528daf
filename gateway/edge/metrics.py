"""What the edge counts. kube-scheduler has no metrics of its own for extenders."""

from typing import Literal, TypeAlias, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from moorage_host.process.histogram import FastHistogram

Verb: TypeAlias = Literal["filter", "prioritize", "preempt", "bind"]
Result: TypeAlias = Literal["ok", "failed", "timeout", "internal", "bad_request", "cancelled"]

_FAST = (0.00025, 0.0005)
_SECONDS = (*_FAST, *(0.001 * 2**power for power in range(15)))
_NODES = (0, 1, *(4**power for power in range(1, 9)))


class EdgeMetrics:
    """Counters and histograms of one edge, their children bound up front.

    Attributes:
        http_timeout: Shows the setting, for alerts about calls that come near to it.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        requests = Counter(
            "moorage_extender_requests_total",
            "Extender calls answered, by verb and result.",
            ("verb", "result"),
            registry=registry,
        )
        duration = FastHistogram(
            "moorage_extender_request_duration_seconds",
            "Time from the headers of a call to its answer.",
            ("verb", "result"),
            buckets=_SECONDS,
            registry=registry,
        )
        nodes = FastHistogram(
            "moorage_extender_nodes",
            "Nodes in a call and in its answer.",
            ("verb", "direction"),
            buckets=_NODES,
            registry=registry,
        )
        self._bad = Counter(
            "moorage_extender_bad_requests_total",
            "Calls that could not be understood, by verb and reason.",
            ("verb", "reason"),
            registry=registry,
        )
        self.http_timeout = Gauge(
            "moorage_extender_http_timeout_seconds",
            "The setting --http-timeout: how long kube-scheduler waits for an answer.",
            registry=registry,
        )
        hidden = Counter(
            "moorage_extender_hidden_failures_total",
            "Failed prioritize calls: kube-scheduler places pods without our scores, silently.",
            ("result",),
            registry=registry,
        )
        each = [(verb, result) for verb in get_args(Verb) for result in get_args(Result)]
        self._requests = {key: requests.labels(*key) for key in each}
        self._duration = {key: duration.observer(*key) for key in each}
        self._hidden = {result: hidden.labels(result) for result in get_args(Result)[1:]}
        self._nodes = {
            verb: (nodes.observer(verb, "in"), nodes.observer(verb, "out"))
            for verb in ("filter", "prioritize", "preempt")
        }

    def answered(self, verb: Verb, result: Result, seconds: float) -> None:
        """Count a call that is over."""
        self._requests[verb, result].inc()
        self._duration[verb, result](seconds)
        if verb == "prioritize" and result != "ok":
            self._hidden[result].inc()

    def bad_request(self, verb: Verb | Literal["none"], reason: str) -> None:
        """Count a call that was not understood; verb "none" is a path that names no verb."""
        self._bad.labels(verb, reason).inc()

    def nodes(self, verb: Verb, received: int, answered: int) -> None:
        """Count the nodes that a call brought and that its answer names."""
        came, left = self._nodes[verb]
        came(received)
        left(answered)
