"""How busy nodes are, from Prometheus or from annotations of the nodes.

Annotations are those of IBM's kube-safe-scheduler: `mean-free-cpu` and `std-free-cpu` in
millicores, `mean-free-memory` and `std-free-memory` in bytes, and what is forecast. `moorage
annotate` writes them, and beside them the time at which they were measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import msgspec
import numpy as np

from moorage.measurements.in_flight import Expected, InFlight, InFlightArguments
from moorage.measurements.plugin import (
    MeasuringPlugin,
    OnMissing,
    annotated_ages,
    annotated_numbers,
    count_in_time,
    fill_missing,
    mark_missing,
    trouble_with_times,
)
from moorage.measurements.prometheus.query import (
    Duration,
    Measure,
    PrometheusSettings,
    positive,
    rate,
    time_range,
)
from moorage.measurements.prometheus.source import PrometheusSource
from moorage.models import Pod
from moorage.plugin.arguments import Arguments
from moorage.plugin.hooks import ScorePlugin
from moorage.plugin.normalization import Scores
from moorage.snapshot import Nodes
from moorage.snapshot.verdicts import Mask
from moorage.units.durations import parse_duration

Resource = Literal["cpu", "memory"]

MEASURED_AT: Final = "load-measured-at"
"""The annotation with the time at which the others were measured, in RFC 3339."""

IDLE: Final = 'node_cpu_seconds_total{mode="idle"}'
MEMORY: Final = Measure(series="1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes")

REQUESTED: Final[Mapping[Resource, Expected]] = {
    "cpu": Expected("moorage.measurements.load.cpu", lambda pod: pod.nonzero_requests["cpu"]),
    "memory": Expected(
        "moorage.measurements.load.memory", lambda pod: pod.nonzero_requests["memory"]
    ),
}
"""What pods are expected to use if nothing better is known."""


class LoadArguments(InFlightArguments):
    """Where to learn how busy nodes are.

    Attributes:
        prometheus: How to reach Prometheus; without an address, annotations of the nodes count.
        window: The time over which Prometheus takes mean and deviation.
        annotation_prefix: The prefix of annotation names, such as "example.com/".
        annotation_max_age: The age from which annotations count as not measured, as do those whose
            load-measured-at cannot be read or is in the future; those without it always count.
        on_missing: What nodes without measurements get: the mean of the others, 0, or the plugin
            fails.
    """

    prometheus: PrometheusSettings = msgspec.field(default_factory=PrometheusSettings)
    window: Duration = "15m"
    annotation_prefix: str = ""
    annotation_max_age: Duration = "15m"
    on_missing: OnMissing = "neutral"

    def __post_init__(self) -> None:
        positive(self.window)
        positive(self.annotation_max_age)


def load_measures(window: str) -> dict[str, Measure]:
    """Return mean and deviation of each resource; rates over a third of the window.

    Nodes that are not measured now have none, even if they had before.
    """
    seconds = parse_duration(window)
    times = f"[{time_range(seconds)}:{time_range(seconds / 15)}]"
    cpu = Measure(series=rate(IDLE, _rate_seconds(seconds)), form="1 - {}")
    measures = {}
    for resource, now in (("cpu", cpu), ("memory", MEMORY)):
        for name, function in ((resource, "avg"), (f"{resource}_deviation", "stddev")):
            form = f"{function}_over_time(({now.form}){times}) and ({now.form})"
            measures[name] = replace(now, form=form)
    return measures


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How busy nodes are in one resource, in millicores or bytes; NaN where that is not known.

    Attributes:
        capacity: What pods may use.
        used: What was used on average.
        deviation: The standard deviation of that.
    """

    capacity: Scores
    used: Scores
    deviation: Scores

    def mean_with(self, demand: float) -> Scores:
        """Return which share of the capacity is used if a pod uses *demand* more, 0..1."""
        return self._share(self.used + demand)

    @property
    def deviation_share(self) -> Scores:
        """The deviation as a share of the capacity, 0..1."""
        return self._share(self.deviation)

    def _share(self, amount: Scores) -> Scores:
        share: Scores = np.full(len(amount), np.nan)
        np.divide(amount, self.capacity, out=share, where=self.capacity > 0)
        return share.clip(0, 1)


class LoadMeter:
    """Reads the load of nodes."""

    def __init__(self, args: LoadArguments) -> None:
        self._prefix = args.annotation_prefix
        window = parse_duration(args.window)
        self._in_flight = InFlight(args, window)
        self._lags: dict[Resource, float] = {"cpu": _rate_seconds(window) / 2, "memory": 0.0}
        self._max_age = parse_duration(args.annotation_max_age)
        self._source: PrometheusSource | None = None
        if args.prometheus.address:
            self._source = PrometheusSource("load", args.prometheus, load_measures(args.window))

    async def start(self) -> None:
        """Begin to ask Prometheus, if it is asked at all."""
        if self._source:
            await self._source.start()

    async def stop(self) -> None:
        """Ask no more."""
        if self._source:
            await self._source.stop()

    def check(self) -> None:
        """Refuse to go on without measurements of Prometheus.

        Raises:
            NoMeasurementsError: It is configured and has not answered recently.
        """
        if self._source:
            self._source.check()

    def trouble(self, nodes: Nodes, missing: Mask) -> str:
        """Return how old measurements are if that is too old or nearly so, and why there are none.

        Args:
            nodes: The nodes.
            missing: Which of them have none.
        """
        if self._source:
            return self._source.trouble(nodes, missing)
        trouble = trouble_with_times(nodes, self._prefix + MEASURED_AT, self._max_age)
        if not trouble and len(nodes) and missing.all():
            return f"without prometheus.address, annotations {self._prefix}mean-free-* count"
        return trouble

    def load(
        self,
        nodes: Nodes,
        resource: Resource,
        *,
        forecast_weight: float = 0,
        expected: Expected | None = None,
    ) -> Load:
        """Return how busy *nodes* are.

        Args:
            nodes: The nodes.
            resource: The resource.
            forecast_weight: How much an annotated forecast counts beside the mean, 0..1.
            expected: What pods use that measurements do not show yet; by default what they request,
                as kube-scheduler scores it.
        """
        capacity = nodes.allocatable(resource).astype(np.float64)
        if self._source:
            used = self._source.values(nodes, resource) * capacity
            deviation = self._source.values(nodes, f"{resource}_deviation") * capacity
        else:
            free = self._annotation(nodes, f"mean-free-{resource}")
            free[self._are_old(nodes)] = np.nan
            forecast = self._annotation(nodes, f"forcasted-free-{resource}")  # its own spelling
            mixed = (1 - forecast_weight) * free + forecast_weight * forecast
            used = np.maximum(capacity - np.where(np.isnan(mixed), free, mixed), 0)
            deviation = self._annotation(nodes, f"std-free-{resource}")
        used = used + self._in_flight.on(
            nodes,
            expected or REQUESTED[resource],
            age=self._age(nodes),
            lag=self._lags[resource],
        )
        return Load(capacity=capacity, used=used, deviation=np.nan_to_num(deviation))

    def _age(self, nodes: Nodes) -> float | Scores:
        """Return how many seconds ago was measured; 0 where annotations have no time."""
        if self._source:
            return self._source.age
        ages = annotated_ages(nodes, self._prefix + MEASURED_AT)
        age: Scores = np.where(count_in_time(ages, self._max_age), np.nan_to_num(ages), 0)
        return np.maximum(age, 0)

    def _annotation(self, nodes: Nodes, name: str) -> Scores:
        return annotated_numbers(nodes, self._prefix + name)

    def _are_old(self, nodes: Nodes) -> Mask:
        ages = annotated_ages(nodes, self._prefix + MEASURED_AT)
        return ~count_in_time(ages, self._max_age)


class LoadScorePlugin(MeasuringPlugin, ScorePlugin):
    """Ranks nodes by their load; `rate` is what a plugin has to write."""

    source: LoadMeter

    class Args(LoadArguments):
        """Where to learn how busy nodes are."""

    def __init__(self, args: Arguments | None = None) -> None:
        super().__init__(args)
        self.source = LoadMeter(self.args)

    def rate(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return 0..100 for each of *nodes*, and NaN for those without measurements."""
        raise NotImplementedError(f"{self.name} has no rate")

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Rate *nodes*, if there are measurements at all."""
        rated = self.rate(pod, nodes)
        self.note_missing(nodes, rated, self.args.on_missing)
        if self.args.on_missing != "worst":
            self.source.check()
        return mark_missing(rated, self.args.on_missing)

    def normalize(self, scores: Scores) -> Scores:
        """Settle what nodes without measurements get."""
        return fill_missing(scores, self.args.on_missing)


def _rate_seconds(window: float) -> float:
    return max(window / 3, 2)
