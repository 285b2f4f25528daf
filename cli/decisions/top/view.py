"""What `moorage top` shows of an interval, as text or as JSON."""

from collections.abc import Sequence
from typing import Any

import msgspec

from cli.shared.gateway.metrics import Change

CALLS = "moorage_extender_request_duration_seconds"
PHASES = "moorage_cycle_duration_seconds"
QUEUE = "moorage_cycle_queue_seconds"
PLUGINS = "moorage_plugin_execution_duration_seconds"


class Work(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """How often something was done in each second, and how long it took, in seconds.

    Attributes:
        name: A verb, "filter phase", "score phase" or "queue".
        failed: How often it failed in each second; what is refused is no failure.
    """

    name: str
    rate: float
    p50: float | None = None
    p99: float | None = None
    failed: float = 0.0


class PluginWork(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """What a plugin did.

    Attributes:
        rate: Cycles in each second.
        mean: Seconds that it took in one.
        rejected: Nodes that it rejected in each second.
        failed: Cycles that went on without it, or failed, in each second.
    """

    plugin: str
    phase: str
    rate: float
    mean: float | None = None
    p99: float | None = None
    rejected: float = 0.0
    failed: float = 0.0


class Replica(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A replica, or of all those of a service how many take part.

    Attributes:
        behind: Generations that it has not got yet.
        unanswered: Cycles that it works on.
    """

    service: str
    place: str = ""
    replica: str = ""
    generation: int = 0
    behind: int = 0
    unanswered: int = 0
    ready: int = 1
    problem: str = ""


class View(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """An interval of a gateway's work.

    Attributes:
        gateway: Its address, or its pod.
        seconds: How long the interval was.
        decides: Whether this gateway decides, or stands by.
        epoch: Of its newest term.
        nodes: How many it knows.
        pods: How many it knows.
        age: Seconds since the API server last sent something about nodes or pods, the longer.
        cycles: Scheduling cycles in each second, those from the cache too.
        decisions: The newest ones, as `GET /decisions` has them.
    """

    gateway: str
    seconds: float
    decides: bool
    epoch: int
    nodes: int
    pods: int
    age: float
    cycles: float
    work: Sequence[Work]
    plugins: Sequence[PluginWork]
    replicas: Sequence[Replica]
    decisions: Sequence[Any]


def view(change: Change, gateway: str, replicas: Any | None, decisions: Sequence[Any]) -> View:
    """Return what to show; *replicas* as `GET /replicas` has them, None if it is not answered."""
    return View(
        gateway=gateway,
        seconds=round(change.seconds, 3),
        decides=bool(change.now("moorage_leader")),
        epoch=int(change.now("moorage_term_epoch")),
        nodes=int(change.now("moorage_cache_size", type="nodes")),
        pods=int(change.now("moorage_cache_size", type="pods")),
        age=max(
            (
                change.now("moorage_cache_age_seconds", resource=resource)
                for (resource,) in change.values_of("moorage_cache_age_seconds", "resource")
            ),
            default=0.0,
        ),
        cycles=change.rate(f"{CALLS}_count", verb="filter"),
        work=[*_calls(change), *_phases(change)],
        plugins=_plugins(change),
        replicas=_replicas(change, replicas),
        decisions=decisions,
    )


def _calls(change: Change) -> list[Work]:
    return [
        Work(
            name=verb,
            rate=change.rate(f"{CALLS}_count", verb=verb),
            p50=change.quantile(0.5, CALLS, verb=verb),
            p99=change.quantile(0.99, CALLS, verb=verb),
            failed=change.rate("moorage_extender_requests_total", verb=verb)
            - change.rate("moorage_extender_requests_total", verb=verb, result="ok"),
        )
        for (verb,) in change.values_of(f"{CALLS}_count", "verb")
    ]


def _phases(change: Change) -> list[Work]:
    phases = [(f"{phase} phase", PHASES, {"phase": phase}) for phase in ("filter", "score")]
    return [
        Work(
            name=name,
            rate=change.rate(f"{metric}_count", **labels),
            p50=change.quantile(0.5, metric, **labels),
            p99=change.quantile(0.99, metric, **labels),
        )
        for name, metric, labels in [*phases, ("queue", QUEUE, {})]
    ]


def _plugins(change: Change) -> list[PluginWork]:
    found = []
    for plugin, phase in change.values_of(f"{PLUGINS}_count", "plugin", "phase"):
        labels = {"plugin": plugin, "phase": phase}
        rejected = change.rate("moorage_rejected_nodes_total", plugin=plugin)
        found.append(
            PluginWork(
                **labels,
                rate=change.rate(f"{PLUGINS}_count", **labels),
                mean=change.mean(PLUGINS, **labels),
                p99=change.quantile(0.99, PLUGINS, **labels),
                rejected=rejected if phase == "filter" else 0.0,
                failed=change.rate("moorage_plugin_failures_total", **labels),
            )
        )
    return sorted(found, key=lambda each: -(each.mean or 0.0) * each.rate)


def _replicas(change: Change, listed: Any | None) -> list[Replica]:
    if listed is None:
        return [
            Replica(service=name, ready=int(change.now("moorage_replicas_ready", service=name)))
            for (name,) in change.values_of("moorage_replicas_ready", "service")
        ]
    return [each for service in listed["services"] for each in _of_service(service)]


def _of_service(service: Any) -> list[Replica]:
    name = service["service"]
    if not service["replicas"]:
        return [Replica(service=name, ready=0, problem=service["problem"] or "no replica")]
    return [
        Replica(
            service=name,
            place=each["place"],
            replica=each["replica"],
            generation=each["generation"],
            behind=each["behind"],
            unanswered=each["unanswered"],
            problem="; ".join(each["problems"].values()),
        )
        for each in service["replicas"]
    ]
