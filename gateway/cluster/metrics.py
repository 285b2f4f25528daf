"""What is counted about the cluster state."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class ClusterCollector(Collector):
    """Reads the state of the cache when Prometheus asks."""

    def __init__(
        self, counts: Callable[[], Mapping[str, int]], ages: Callable[[], Mapping[str, float]]
    ) -> None:
        """Read sizes by type from *counts*, and seconds of silence by resource from *ages*."""
        self._counts = counts
        self._ages = ages

    def collect(self) -> Iterable[Metric]:
        """Return the gauges."""
        yield _gauge("moorage_cache_size", "Objects in the cache.", "type", self._counts())
        yield _gauge(
            "moorage_cache_age_seconds",
            "Time since the API server last sent something about a resource.",
            "resource",
            self._ages(),
        )


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value in values:
        family.add_metric([value], values[value])
    return family
