"""What is counted about the cluster state and the watches that feed it."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from moorage_host.process.metrics import children


class WatchMetrics:
    """Counts what watches do; `events` and `restarts` by resource and type or reason."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.events = children(
            Counter(
                "moorage_watch_events",
                "Events from the API server.",
                ["resource", "type"],
                registry=registry,
            )
        )
        self.restarts = children(
            Counter(
                "moorage_watch_restarts",
                "Watches that ended, by reason.",
                ["resource", "reason"],
                registry=registry,
            )
        )
        self.refused = children(
            Counter(
                "moorage_refused_objects",
                "Objects of other kinds that were left out because they are too large.",
                ["resource"],
                registry=registry,
            )
        )


class ClusterCollector(Collector):
    """Reads the state of the cache when Prometheus asks."""

    def __init__(
        self,
        counts: Callable[[], Mapping[str, int]],
        ages: Callable[[], Mapping[str, float]],
        heavy: Callable[[], Mapping[str, int]],
    ) -> None:
        """Read sizes by type, seconds of silence by resource, bytes of large pods by namespace."""
        self._counts = counts
        self._ages = ages
        self._heavy = heavy

    def collect(self) -> Iterable[Metric]:
        """Return the gauges."""
        yield _gauge("moorage_cache_size", "Objects in the cache.", "type", self._counts())
        yield _gauge(
            "moorage_cache_age_seconds",
            "Time since the API server last sent something about a resource.",
            "resource",
            self._ages(),
        )
        yield _gauge(
            "moorage_large_pods_bytes",
            "Bytes of pods of 16 KiB and more, of the 20 namespaces with most.",
            "pod_namespace",
            self._heavy(),
        )


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value in values:
        family.add_metric([value], values[value])
    return family
