"""What is counted about watches."""

from prometheus_client import CollectorRegistry, Counter

from gateway.cluster.watch.limits import Restart
from moorage_host.process.metrics import children


class WatchFamilies:
    """The metric families of watches."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.events = Counter(
            "moorage_watch_events",
            "Events from the API server.",
            ["resource", "type"],
            registry=registry,
        )
        self.restarts = Counter(
            "moorage_watch_restarts",
            "Watches that ended, by reason.",
            ["resource", "reason"],
            registry=registry,
        )
        self.refused = Counter(
            "moorage_refused_objects",
            "Objects of further kinds that were left out because they are too large.",
            ["resource"],
            registry=registry,
        )


class WatchMetrics:
    """Counts what one reflector does."""

    def __init__(self, families: WatchFamilies, resource: str) -> None:
        self._families = families
        self._resource = resource
        self._events = children(families.events)

    def received(self, event: str) -> None:
        """Count an event."""
        self._events(self._resource, event).inc()

    def restarted(self, reason: Restart) -> None:
        """Count a watch that ended."""
        self._families.restarts.labels(self._resource, reason).inc()
