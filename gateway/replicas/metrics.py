"""What is counted about replicas: their sessions, and the phases of cycles that they run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.cycle.decision import BindPluginRecord, FilterRecord, PhaseName, ScoreRecord
from moorage.models.base import NOTHING
from moorage_host.process.histogram import FastHistogram, Observe

Cause = Literal["slow", "lost"]

SECONDS = tuple(0.0001 * 2**power for power in range(16))


class ReplicaMetrics:
    """The metric families of all kinds of service, and their children, looked up once.

    Attributes:
        cached: Counts a phase that the cache answered, by whether that was as a whole.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.bytes = Counter(
            "moorage_session_sent_bytes",
            "Bytes sent to replicas: full states, deltas, cycles.",
            ["service", "part"],
            registry=registry,
        )
        self.opened = Counter(
            "moorage_sessions_opened",
            "Sessions that were opened.",
            ["service"],
            registry=registry,
        )
        self.ready = Gauge(
            "moorage_replicas_ready", "Replicas that take part.", ["service"], registry=registry
        )
        self.generation = Gauge(
            "moorage_replica_generation",
            "The newest generation of the state that a replica has confirmed.",
            ["service"],
            registry=registry,
        )
        self.resent = Counter(
            "moorage_cycles_resent",
            "Cycles, or parts of one, that were sent to another replica too because one was slow "
            "or lost.",
            ["service", "cause"],
            registry=registry,
        )
        self.invalid = Counter(
            "moorage_invalid_results",
            "Results of replicas that cannot be right and were refused.",
            ["service"],
            registry=registry,
        )
        self._phases = FastHistogram(
            "moorage_cycle_duration_seconds",
            "Time of a phase of a cycle in the replica.",
            ["phase"],
            buckets=SECONDS,
            registry=registry,
        )
        self._plugins = FastHistogram(
            "moorage_plugin_execution_duration_seconds",
            "Time of a plugin in one phase of a cycle.",
            ["plugin", "phase"],
            buckets=SECONDS,
            registry=registry,
        )
        self._failures = Counter(
            "moorage_plugin_failures",
            "Cycles that went on without a plugin because it failed.",
            ["plugin", "phase"],
            registry=registry,
        )
        self._scattered = Counter(
            "moorage_scattered_cycles",
            "Phases of cycles that several replicas shared.",
            ["phase"],
            registry=registry,
        )
        cached = Counter(
            "moorage_cached_phases",
            "Phases of cycles that the cache answered, as a whole or in part.",
            ["phase", "extent"],
            registry=registry,
        )
        self.cached: Mapping[tuple[PhaseName, bool], Callable[[], None]] = {
            (phase, whole): cached.labels(phase, extent).inc
            for phase in get_args(PhaseName)
            for whole, extent in ((True, "whole"), (False, "part"))
        }
        self._differences = Counter(
            "moorage_cache_differences",
            "Cached answers that replicas did not confirm (--cache-verify-share): a plugin "
            "declares too little.",
            ["phase"],
            registry=registry,
        )
        self._observe: dict[PhaseName, Observe] = {
            "filter": self._phases.observer("filter"),
            "score": self._phases.observer("score"),
        }
        self._observe_plugin: dict[tuple[str, str], Observe] = {}

    def cache_differs(self, phase: PhaseName) -> None:
        """Count an answer from the cache that replicas did not confirm."""
        self._differences.labels(phase).inc()

    def ran(
        self, phase: PhaseName, record: FilterRecord | ScoreRecord, labels: Mapping[str, str]
    ) -> None:
        """Observe what replicas did in a phase; *labels* are those of examples."""
        self._observe[phase](record.seconds, labels)
        if record.shards > 1:
            self._scattered.labels(phase).inc()
        for plugin in record.plugins:
            observe = self._observe_plugin.get((plugin.plugin, phase))
            (observe or self._observer(plugin.plugin, phase))(plugin.seconds, labels)
            if plugin.failure:
                self._failures.labels(plugin.plugin, phase).inc()

    def bound(self, records: Sequence[BindPluginRecord]) -> None:
        """Observe what plugins did for a bind."""
        for each in records:
            self._observer(each.plugin, "bind")(each.seconds, NOTHING)
            if each.result == "failed":
                self._failures.labels(each.plugin, "bind").inc()

    def _observer(self, plugin: str, phase: str) -> Observe:
        key = plugin, phase
        if key not in self._observe_plugin:
            self._observe_plugin[key] = self._plugins.observer(plugin, phase)
        return self._observe_plugin[key]


class SessionMetrics:
    """The sessions of one kind of service, with children bound once.

    Attributes:
        sent: Takes the bytes of a "full" snapshot, a "delta", or a "cycle".
        confirmed: Takes the generation that a replica has confirmed.
        resent: Counts work that went to a further replica, by cause.
        invalid: Counts a result that cannot be right.
    """

    def __init__(self, families: ReplicaMetrics, service: str) -> None:
        self.sent: dict[str, Callable[[float], None]] = {
            part: families.bytes.labels(service, part).inc for part in ("full", "delta", "cycle")
        }
        self.confirmed: Callable[[float], None] = families.generation.labels(service).set
        self.resent: dict[Cause, Callable[[], None]] = {
            "slow": families.resent.labels(service, "slow").inc,
            "lost": families.resent.labels(service, "lost").inc,
        }
        self.invalid: Callable[[], None] = families.invalid.labels(service).inc
        self._opened = families.opened.labels(service)
        self._ready = families.ready.labels(service)

    def session_opened(self, ready: int) -> None:
        """Count a replica that has caught up; *ready* is how many take part now."""
        self._opened.inc()
        self._ready.set(ready)

    def session_closed(self, ready: int) -> None:
        """Note that a replica was lost; *ready* is how many are left."""
        self._ready.set(ready)
