"""Prefers nodes by what they cost, or by any other number, and spreads replicas where cheap.

The number comes from a file, Prometheus, or the nodes. What counts is the ratio to the best one: a
node that costs a tenth more than the cheapest gets 91 points of 100.
"""

import math
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import numpy as np
from msgspec import field

from moorage import (
    MAX_SCORE,
    Amounts,
    Arguments,
    Meta,
    Nodes,
    Pod,
    ScorePlugin,
    Scores,
    parse_duration,
)
from moorage.files import load_all
from moorage.in_tree.shared import POD_LABELS
from moorage.measurements import (
    Duration,
    Measure,
    MeasuringPlugin,
    OnMissing,
    PrometheusSettings,
    PrometheusSource,
    annotated_numbers,
    fill_missing,
    mark_missing,
    positive,
)
from moorage.models import LabelSelector, PodAffinityTerm

COST: Final = "cost"


class NodeCost(MeasuringPlugin, ScorePlugin):
    """Prefers nodes with a low number, such as a price, from a file, Prometheus or annotations."""

    class Args(Arguments):
        """Where the numbers come from, and what is good. Numbers below 0 count as missing.

        Attributes:
            file: YAML or JSON with numbers by node name, or a folder with a file for each name,
                such as a mounted ConfigMap.
            label: The node label by which the file is keyed instead of names, such as
                node.kubernetes.io/instance-type.
            interval: How often the file is read.
            annotation: The annotation with the number, without a file or query.
            query: PromQL with one series per node.
            prometheus: How to reach Prometheus, and how it names nodes.
            better: Whether low or high numbers are good.
            tolerance: Numbers within this share of the best count as equal to it.
            spread_by: The node label that makes domains, such as topology.kubernetes.io/region; ""
                does not spread.
            spread: By what share each pod with the same labels makes the nodes of its domain worse.
            on_missing: What nodes without a number get: the mean of the others, 0, or the plugin
                fails.
        """

        file: str = ""
        label: str = ""
        interval: Duration = "30s"
        annotation: Annotated[str, Meta(min_length=1)] = "example.com/cost"
        query: str = ""
        prometheus: PrometheusSettings = field(default_factory=PrometheusSettings)
        better: Literal["lowest", "highest"] = "lowest"
        tolerance: Annotated[float, Meta(ge=0, le=1)] = 0.0
        spread_by: str = ""
        spread: Annotated[float, Meta(ge=0, le=10)] = 0.1
        on_missing: OnMissing = "neutral"

        def __post_init__(self) -> None:
            if bool(self.query) != bool(self.prometheus.address):
                raise ValueError("query and prometheus.address need each other")
            if self.file and self.query:
                raise ValueError("the numbers come from file or from query: leave one of them out")
            if self.label and not self.file:
                raise ValueError("label says by what file has numbers, and there is no file")
            positive(self.interval)

    source: PrometheusSource | None = None

    def __init__(self, args: Arguments | None = None) -> None:
        """Take the arguments."""
        super().__init__(args)
        self._numbers: dict[str, float] = {}
        if self.args.query:
            measures = {COST: Measure(series=self.args.query, aggregate="max")}
            self.source = PrometheusSource(COST, self.args.prometheus, measures)

    async def start(self) -> None:
        """Read the file, or begin to ask Prometheus."""
        await super().start()
        if self.args.file:
            self._read()
            self.poll(self._read, parse_duration(self.args.interval))

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return the number of each node, worse by the pods of its domain that are like this."""
        numbers = self._costs(nodes)
        numbers = np.where(numbers >= 0, numbers, np.nan)
        self.note_missing(nodes, numbers, self.args.on_missing)
        if self.source and self.args.on_missing != "worst":
            self.source.check()
        if self.args.spread_by:
            worse = 1 + self.args.spread * self._replicas(pod, nodes)
            numbers = numbers * worse if self.args.better == "lowest" else numbers / worse
        return mark_missing(numbers, self.args.on_missing)

    def normalize(self, scores: Scores) -> Scores:
        """Give the best node 100, others the ratio to it."""
        return fill_missing(scores, self.args.on_missing, self._ratios)

    def _ratios(self, numbers: Scores) -> Scores:
        if self.args.better == "lowest":
            best = numbers.min()
            is_best = numbers <= best * (1 + self.args.tolerance)
            ratios = np.divide(best, numbers, out=np.zeros(len(numbers)), where=numbers > 0)
        else:
            best = numbers.max()
            is_best = numbers >= best * (1 - self.args.tolerance)
            ratios = numbers / best if best else np.zeros(len(numbers))
        return MAX_SCORE * np.where(is_best, 1.0, ratios)

    def _costs(self, nodes: Nodes) -> Scores:
        if self.source is not None:
            return self.source.values(nodes, COST)
        if not self.args.file:
            return annotated_numbers(nodes, self.args.annotation)
        numbers = self._numbers
        if self.args.label:
            costs: Scores = nodes.label(self.args.label).map(
                lambda v: numbers.get(v or "", math.nan)
            )
            return costs
        return np.array([numbers.get(name, math.nan) for name in nodes.names], np.float64)

    def _replicas(self, pod: Pod, nodes: Nodes) -> Amounts:
        """Return for each node how many pods with the pod's labels are in its domain."""
        labels = {key: value for key, value in pod.labels.items() if key not in POD_LABELS}
        if not labels:
            return np.zeros(len(nodes), np.int64)
        term = PodAffinityTerm(label_selector=LabelSelector(match_labels=labels))
        alike = nodes.cluster.count_pods([term], pod.namespace)
        return nodes.by_domain(self.args.spread_by, alike)

    def _read(self) -> None:
        """Read the numbers.

        Raises:
            ConfigurationError, OSError: The file cannot be read.
            ValueError: It has something else than numbers in it.
        """
        path = Path(self.args.file)
        if path.is_dir():
            files = [each for each in path.iterdir() if each.is_file() and each.name[0] != "."]
            self._numbers = {each.name: float(each.read_text()) for each in files}
        else:
            self._numbers = msgspec.convert(next(load_all(path), None), dict[str, float])
