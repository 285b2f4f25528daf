"""What the edge counts of calls, and who called last.

kube-scheduler has no metrics of its own for extenders. The last calls show whether it reaches the
gateway, and as whom.
"""

import time
from collections.abc import Mapping
from ssl import cert_time_to_seconds
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from moorage_host.process.histogram import FastHistogram

Verb: TypeAlias = Literal["filter", "prioritize", "preempt", "bind"]
Result: TypeAlias = Literal["ok", "failed", "timeout", "internal", "bad_request", "cancelled"]

_FAST = (0.00025, 0.0005)
_SECONDS = (*_FAST, *(0.001 * 2**power for power in range(15)))
_NODES = (0, 1, *(4**power for power in range(1, 9)))

NO_CERTIFICATE: Mapping[str, Any] = MappingProxyType({})

KEPT = 32
"""Callers and verbs that are kept; the one whose last call is longest ago is forgotten first."""


class EdgeMetrics:
    """Counters and histograms of one edge, their children bound up front.

    Attributes:
        requests: Counts calls that are over, by verb and result.
        seconds: Takes how long such a call took.
        hidden: Counts failed prioritize calls, by result.
        nodes: Takes how many nodes a call brought, and how many its answer names, by verb.
        bad: Counts calls that were not understood, by verb and reason; the verb "none" is a path
            that names no verb.
    """

    def __init__(self, registry: CollectorRegistry, http_timeout: float = 0.0) -> None:
        """Register them; *http_timeout* is shown, for alerts about calls that come near to it."""
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
        self.bad = Counter(
            "moorage_extender_bad_requests_total",
            "Calls that could not be understood, by verb and reason.",
            ("verb", "reason"),
            registry=registry,
        )
        Gauge(
            "moorage_extender_http_timeout_seconds",
            "The setting --http-timeout.",
            registry=registry,
        ).set(http_timeout)
        hidden = Counter(
            "moorage_extender_hidden_failures_total",
            "Failed prioritize calls; kube-scheduler then silently places pods without Moorage's "
            "scores.",
            ("result",),
            registry=registry,
        )
        each = [(verb, result) for verb in get_args(Verb) for result in get_args(Result)]
        self.requests = {key: requests.labels(*key) for key in each}
        self.seconds = {key: duration.observer(*key) for key in each}
        self.hidden = {result: hidden.labels(result) for result in get_args(Result)[1:]}
        self.nodes = {
            verb: (nodes.observer(verb, "in"), nodes.observer(verb, "out"))
            for verb in ("filter", "prioritize", "preempt")
        }


class LastCalls:
    """The newest call of each caller and verb."""

    def __init__(self) -> None:
        """Know no call."""
        self._calls: dict[tuple[str, str], tuple[int, float, Mapping[str, Any]]] = {}

    def note(self, caller: str, verb: str, certificate: Mapping[str, Any] = NO_CERTIFICATE) -> None:
        """Note a call; the verb is "" for somebody who may not call."""
        count, *_ = self._calls.pop((caller, verb), (0,))
        self._calls[caller, verb] = count + 1, time.monotonic(), certificate
        if len(self._calls) > KEPT:
            del self._calls[next(iter(self._calls))]

    def shown(self) -> list[dict[str, Any]]:
        """Return them, the newest first; without a verb for those that were refused."""
        now = time.monotonic()
        return [
            {
                "caller": caller,
                "verb": verb,
                "refused": not verb,
                "calls": count,
                "secondsAgo": round(now - last, 3),
                "certificate": {
                    field: cert_time_to_seconds(certificate[field])
                    for field in ("notBefore", "notAfter")
                    if field in certificate
                },
            }
            for (caller, verb), (count, last, certificate) in reversed(self._calls.items())
        ]
