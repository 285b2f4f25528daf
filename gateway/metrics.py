"""What is counted about cycles and the cluster state."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.decisions.log import FilterRecord, PluginRecord, ScoreRecord
from moorage_host.process.histogram import FastHistogram

ClaimOutcome = Literal["taken", "renewed", "refused"]

SECONDS = tuple(0.0001 * 2**power for power in range(16))


class CycleMetrics:
    """The metrics of cycles."""

    def __init__(self, registry: CollectorRegistry) -> None:
        half = FastHistogram(
            "moorage_cycle_duration_seconds",
            "Time of each half of a cycle in the replica.",
            ["half"],
            buckets=SECONDS,
            registry=registry,
        )
        self._filter = half.observer("filter")
        self._score = half.observer("score")
        queue = FastHistogram(
            "moorage_cycle_queue_seconds",
            "Time that a cycle waited for those before it.",
            buckets=SECONDS,
            registry=registry,
        )
        self.queued = queue.observer()
        """Note how many seconds a cycle waited for its turn."""
        plugins = FastHistogram(
            "moorage_plugin_execution_duration_seconds",
            "Time of a plugin in one cycle, at all its extension points of that half.",
            ["plugin", "half"],
            buckets=SECONDS,
            registry=registry,
        )
        self._plugins = plugins.observer
        self._failures = Counter(
            "moorage_plugin_failures",
            "Cycles that went on without a plugin because it failed.",
            ["plugin", "half"],
            registry=registry,
        )
        self._rejected = Counter(
            "moorage_rejected_nodes",
            "Nodes that a filter plugin rejected.",
            ["plugin"],
            registry=registry,
        )
        self._foreign = Counter(
            "moorage_foreign_pods",
            "Calls for pods whose schedulerName has no profile here: all nodes passed.",
            registry=registry,
        )
        self._claims = Counter(
            "moorage_claims",
            "Nodes claimed for pods in their cycle (taken), or claims that were lost before the "
            "bind and then taken again (renewed) or not (refused).",
            ["outcome"],
            registry=registry,
        )
        expected = Counter(
            "moorage_expected_scores",
            "Cycles whose scoring began beside the filter half, since the nodes that would be left "
            "were expected, and whether they were right.",
            ["outcome"],
            registry=registry,
        )
        self._expected = {True: expected.labels("right"), False: expected.labels("wrong")}
        usual = Counter(
            "moorage_expected_nodes",
            "Cycles whose filtering began before their names were looked up, since calls named the "
            "same nodes time and again, and whether that was right.",
            ["outcome"],
            registry=registry,
        )
        self._usual = {True: usual.labels("right"), False: usual.labels("wrong")}
        self._scattered = Counter(
            "moorage_scattered_cycles",
            "Halves of cycles that several replicas shared.",
            ["half"],
            registry=registry,
        )
        self._remembered = Counter(
            "moorage_remembered_rejections",
            "Filter calls that were answered without asking a replica, as an equal pod had been "
            "rejected on the same nodes.",
            registry=registry,
        )
        halves = Counter(
            "moorage_remembered_halves",
            "Halves of cycles for which no replica was asked about any node (whole), or not about "
            "all (part), as it was known from equal pods.",
            ["half", "extent"],
            registry=registry,
        )
        self._halves = {
            (half, whole): halves.labels(half, extent)
            for half in ("filter", "score")
            for whole, extent in ((True, "whole"), (False, "part"))
        }
        self._nonsense = Counter(
            "moorage_invalid_results",
            "Results of replicas that were refused because they cannot be right.",
            ["service"],
            registry=registry,
        )

    def filtered(self, record: FilterRecord) -> None:
        """Note what filter replicas did."""
        self._filter(record.seconds)
        self._note(record.plugins, "filter")
        if record.shards > 1:
            self._scattered.labels("filter").inc()

    def rejected(self, record: FilterRecord) -> None:
        """Note what came of a filter half, whoever said it."""
        for plugin in record.plugins:
            if plugin.rejected:
                self._rejected.labels(plugin.plugin).inc(plugin.rejected)

    def scored(self, record: ScoreRecord) -> None:
        """Note what scorer replicas did."""
        self._score(record.seconds)
        self._note(record.plugins, "score")
        if record.shards > 1:
            self._scattered.labels("score").inc()

    def claimed(self, outcome: ClaimOutcome) -> None:
        """Count a claim."""
        self._claims.labels(outcome).inc()

    def expected(self, *, right: bool) -> None:
        """Count a cycle that was scored before it was filtered."""
        self._expected[right].inc()

    def usual(self, *, right: bool) -> None:
        """Count a cycle that was filtered before its names were looked up."""
        self._usual[right].inc()

    def remembered(self) -> None:
        """Count a filter call that was answered from memory."""
        self._remembered.inc()

    def remembered_half(self, half: str, *, whole: bool) -> None:
        """Count a half for which replicas were asked about no node, or about a part of them."""
        self._halves[half, whole].inc()

    def foreign(self) -> None:
        """Count a call for a pod that is not ours."""
        self._foreign.inc()

    def nonsense(self, service: str) -> None:
        """Count a result that cannot be right."""
        self._nonsense.labels(service).inc()

    def _note(self, plugins: Iterable[PluginRecord], half: str) -> None:
        for plugin in plugins:
            self._plugins(plugin.plugin, half)(plugin.seconds)
            if plugin.failure:
                self._failures.labels(plugin.plugin, half).inc()


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
            "Time since the API server last said something about a resource.",
            "resource",
            self._ages(),
        )


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value in values:
        family.add_metric([value], values[value])
    return family
