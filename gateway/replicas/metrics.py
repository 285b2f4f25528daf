"""What is counted about sessions."""

from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge

Cause = Literal["slow", "lost"]

PARTS = ("full", "delta", "cycle")


class SessionMetrics:
    """The sessions of one kind of service, with children bound once."""

    def __init__(self, families: "SessionFamilies", service: str) -> None:
        self._sent = {part: families.bytes.labels(service, part) for part in PARTS}
        self._opened = families.opened.labels(service)
        self._ready = families.ready.labels(service)
        self._generation = families.generation.labels(service)
        self._resent = {cause: families.resent.labels(service, cause) for cause in ("slow", "lost")}

    def sent(self, part: str, size: int) -> None:
        """Count *size* bytes of a "full" snapshot, a "delta", or a "cycle" with its delta."""
        self._sent[part].inc(size)

    def session_opened(self, ready: int) -> None:
        """Count a replica that has caught up; *ready* is how many take part now."""
        self._opened.inc()
        self._ready.set(ready)

    def session_closed(self, ready: int) -> None:
        """Note that a replica was lost; *ready* is how many are left."""
        self._ready.set(ready)

    def caught_up(self, generation: int) -> None:
        """Note which generation a replica has confirmed; 0 while it is sent a full snapshot."""
        if generation:
            self._generation.set(generation)

    def resent(self, cause: Cause) -> None:
        """Count work that went to a further replica because one is slow or was lost."""
        self._resent[cause].inc()


class SessionFamilies:
    """The metric families of sessions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.bytes = Counter(
            "moorage_session_sent_bytes",
            "Bytes sent to replicas: full snapshots, deltas, and cycles with what changed before.",
            ["service", "part"],
            registry=registry,
        )
        self.opened = Counter(
            "moorage_sessions_opened",
            "Sessions that were opened and synchronised.",
            ["service"],
            registry=registry,
        )
        self.ready = Gauge(
            "moorage_replicas_ready", "Replicas that take part.", ["service"], registry=registry
        )
        self.generation = Gauge(
            "moorage_replica_generation",
            "The newest generation that a replica has confirmed.",
            ["service"],
            registry=registry,
        )
        self.resent = Counter(
            "moorage_cycles_resent",
            "Cycles, or parts of one, that were sent to a further replica because one had not "
            "answered as soon as usual (slow), or was lost.",
            ["service", "cause"],
            registry=registry,
        )
