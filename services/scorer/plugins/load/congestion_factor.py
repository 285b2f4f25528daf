"""Avoids congested nodes, by any number that measures congestion."""

from typing import Annotated, Literal

import numpy as np
from msgspec import field

from moorage import MAX_SCORE, Arguments, Meta, Nodes, Pod, ScorePlugin, Scores
from moorage.measurements import (
    InFlight,
    InFlightArguments,
    Measure,
    MeasuringPlugin,
    PrometheusSettings,
    PrometheusSource,
    annotated_numbers,
    fill_missing,
    mark_missing,
)

FACTOR = "factor"


class CongestionFactor(MeasuringPlugin, ScorePlugin):
    """Prefers nodes with a low congestion factor, an annotation or a query of Prometheus."""

    class Args(InFlightArguments):
        """Where the factor comes from.

        Attributes:
            annotation: The annotation of nodes that holds it.
            query: PromQL with one series per node, instead of the annotation.
            prometheus: How to reach Prometheus, and how it names nodes.
            maximum: The factor at and above which a node gets 0.
            in_flight: "step" adds a share for each recent pod, for factors that grow with the
                number of pods.
            on_missing: What nodes without a factor get: 100 (idle), the mean of the others, 0, or
                the plugin fails.
        """

        annotation: Annotated[str, Meta(min_length=1)] = "congestion-factor"
        query: str = ""
        prometheus: PrometheusSettings = field(default_factory=PrometheusSettings)
        in_flight: Literal["step", "off"] = "off"
        maximum: Annotated[float, Meta(gt=0)] = 100.0
        on_missing: Literal["idle", "neutral", "worst", "fail"] = "idle"

        def __post_init__(self) -> None:
            if bool(self.query) != bool(self.prometheus.address):
                raise ValueError("query and prometheus.address need each other")

    source: PrometheusSource | None = None

    def __init__(self, args: Arguments | None = None) -> None:
        """Take the arguments."""
        super().__init__(args)
        self._in_flight = InFlight(self.args)
        if self.args.query:
            measures = {FACTOR: Measure(series=self.args.query, aggregate="max")}
            self.source = PrometheusSource("congestion", self.args.prometheus, measures)

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return 100 without congestion, 0 at the maximum and above."""
        age = self.source.age if self.source else 0
        factors = self._in_flight.with_shares(nodes, self._factors, age=age)
        idle = self.args.on_missing == "idle"
        self.note_missing(nodes, factors, self.args.on_missing, expected=idle)
        if self.source and self.args.on_missing not in ("idle", "worst"):
            self.source.check()
        if idle:
            return self._scores(np.nan_to_num(factors))
        return mark_missing(self._scores(factors), self.args.on_missing)

    def normalize(self, scores: Scores) -> Scores:
        """Settle what nodes without a factor get."""
        return fill_missing(scores, self.args.on_missing)

    def _factors(self, nodes: Nodes) -> Scores:
        if self.source is None:
            return annotated_numbers(nodes, self.args.annotation)
        return self.source.values(nodes, FACTOR)

    def _scores(self, factors: Scores) -> Scores:
        return MAX_SCORE * (1 - np.clip(factors / self.args.maximum, 0, 1))
