"""Prefers nodes with little network traffic, by what node_exporter counts and Prometheus keeps."""

import re
from typing import Annotated, Literal

import numpy as np
from msgspec import field
from msgspec.structs import replace

from moorage import (
    Arguments,
    Meta,
    Nodes,
    Pod,
    ScorePlugin,
    Scores,
    normalize_by_maximum,
    parse_duration,
)
from moorage.measurements import (
    Address,
    InFlight,
    InFlightArguments,
    Measure,
    MeasuringPlugin,
    OnMissing,
    PrometheusSettings,
    PrometheusSource,
    fill_missing,
    mark_missing,
    positive,
    quoted,
    rate,
    time_range,
)

TRAFFIC = "traffic"


class NetworkTraffic(MeasuringPlugin, ScorePlugin):
    """Prefers nodes with little network traffic recently, as node_exporter counts it."""

    class Args(InFlightArguments):
        """What to measure, and where.

        Attributes:
            prometheus_address: Short for the address in `prometheus`.
            prometheus: How to reach Prometheus, and how it names nodes.
            network_interface: A name, a regular expression, or "!" and one of all others.
            time_range_in_minutes: The time over which traffic is averaged.
            time_range: The same as a duration such as "90s"; it should hold four scrapes.
            direction: The traffic that counts.
            compat: "sumOverTime" adds up readings of the counters, so that old nodes seem busy.
            on_missing: What nodes without measurements get: the mean of the others ("neutral"), 0
                ("worst"), or the plugin fails.
        """

        prometheus_address: Address = ""
        prometheus: PrometheusSettings = field(default_factory=PrometheusSettings)
        network_interface: Annotated[str, Meta(min_length=1)] = "ens192"
        time_range_in_minutes: Annotated[int, Meta(ge=1)] = 5
        time_range: str = ""
        direction: Literal["receive", "transmit", "both"] = "receive"
        compat: Literal["none", "sumOverTime"] = "none"
        on_missing: OnMissing = "neutral"

        def __post_init__(self) -> None:
            if self.prometheus_address and self.prometheus.address:
                raise ValueError("prometheusAddress and prometheus.address exclude each other")
            positive(self.time_range or "5m")

    source: PrometheusSource

    def __init__(self, args: Arguments | None = None) -> None:
        """Take the arguments; the address of Prometheus has no default."""
        super().__init__(args)
        address = self.args.prometheus_address or self.args.prometheus.address
        settings = replace(self.args.prometheus, address=address)
        self.source = PrometheusSource("traffic", settings, {TRAFFIC: _measure(self.args)})
        # A sum of readings does not show what one pod adds.
        counted = self.args if self.args.compat == "none" else replace(self.args, in_flight="off")
        self._in_flight = InFlight(counted, parse_duration(_window(self.args)))

    def score(self, pod: Pod, nodes: Nodes) -> Scores:
        """Return whole bytes per second."""
        traffic = self._in_flight.with_shares(nodes, self._traffic, age=self.source.age)
        self.note_missing(nodes, traffic, self.args.on_missing)
        if self.args.on_missing != "worst":
            self.source.check()
        return mark_missing(np.trunc(traffic), self.args.on_missing)

    def normalize(self, scores: Scores) -> Scores:
        """Give 100 to idle nodes, 0 to the busiest."""
        return fill_missing(
            scores, self.args.on_missing, lambda known: normalize_by_maximum(known, reverse=True)
        )

    def _traffic(self, nodes: Nodes) -> Scores:
        return self.source.values(nodes, TRAFFIC)


def _measure(args: NetworkTraffic.Args) -> Measure:
    both = ("receive", "transmit")
    directions = both if args.direction == "both" else (args.direction,)
    device = f"{{device{_matcher(args.network_interface)}}}"
    counters = (f"node_network_{direction}_bytes_total{device}" for direction in directions)
    parts = (_over_time(args, counter) for counter in counters)
    return Measure(series=" + ".join(parts), aggregate="sum", distinct=("device",))


def _over_time(args: NetworkTraffic.Args, counters: str) -> str:
    seconds = parse_duration(_window(args))
    if args.compat == "none":
        return rate(counters, seconds)
    return f"sum_over_time({counters}[{time_range(seconds)}])"


def _window(args: NetworkTraffic.Args) -> str:
    return args.time_range or f"{args.time_range_in_minutes}m"


def _matcher(interface: str) -> str:
    """Match a name exactly, and anything with a sign that names do not have as an expression."""
    if interface.startswith("!"):
        return f"!~{quoted(interface[1:])}"
    operator = "=" if re.fullmatch(r"[\w.:@-]+", interface) else "=~"
    return f"{operator}{quoted(interface)}"
