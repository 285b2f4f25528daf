"""What pods use that the measurements of their nodes do not show yet.

A pod shows only after a while, and in a mean over a window bit by bit. Until then pod after pod
would go to the node that merely looks idle. So plugins add what pods that came to a node recently
are expected to use to what was measured there.
"""

from collections.abc import Callable, Hashable
from typing import Literal, NamedTuple

import numpy as np

from moorage.measurements.prometheus.query import Duration
from moorage.models import Pod
from moorage.plugin.arguments import Arguments
from moorage.plugin.normalization import Scores
from moorage.snapshot import Nodes
from moorage.units.durations import parse_duration


class InFlightArguments(Arguments):
    """How pods count that measurements do not show yet.

    Attributes:
        in_flight: How much of a recent pod is added: "average" the part of the window before it
            came, "step" all of it for a time, as trimaran does, or "off".
        reporting_interval: How long it takes until measurements show what a pod uses.
    """

    in_flight: Literal["average", "step", "off"] = "average"
    reporting_interval: Duration = "60s"


class Expected(NamedTuple):
    """What pods are expected to use.

    Attributes:
        key: Names it: the same key must always come with the same amounts.
        amount: Returns it for a pod.
    """

    key: Hashable
    amount: Callable[[Pod], float]


class InFlight:
    """Adds up what recently placed pods are expected to use."""

    def __init__(self, args: InFlightArguments, window: float = 0) -> None:
        """Take the arguments, and over how many seconds measurements are means."""
        self._off = args.in_flight == "off"
        self._window = window if args.in_flight == "average" else 0
        self._delay = parse_duration(args.reporting_interval)

    def on(
        self, nodes: Nodes, expected: Expected, *, age: float | Scores, lag: float = 0
    ) -> Scores:
        """Return how much use of each of *nodes* is missing in measurements.

        Args:
            nodes: The nodes.
            expected: What pods are expected to use.
            age: How many seconds ago the measurements were taken, in all or on each of *nodes*.
            lag: By how many seconds means lie behind, in addition to the window and the delay.
        """
        if self._off or not np.isfinite(age).all():
            return np.zeros(len(nodes))
        within = age + self._delay + (lag if self._window else 0)
        return nodes.newly_placed(expected.key, expected.amount, within=within, fading=self._window)

    def with_shares(
        self, nodes: Nodes, measure: Callable[[Nodes], Scores], *, age: float
    ) -> Scores:
        """Return *measure* of *nodes*, plus a share for each pod that it misses.

        For numbers where it is unknown what a pod will add: it is taken to add as much as
        falls to each pod in the cluster that the measurements show.
        """
        measured = measure(nodes)
        missing = self.on(nodes, _PODS, age=age)
        if not missing.any():
            return measured
        cluster = nodes.cluster
        shown = cluster.requested("pods") - self.on(cluster, _PODS, age=age)
        return measured + missing * _share(measure(cluster), shown)


_PODS = Expected("moorage.measurements.in_flight.pods", lambda pod: 1)


def _share(measured: Scores, pods: Scores) -> float:
    known = ~np.isnan(measured)
    count = float(pods[known].sum())
    return float(measured[known].sum()) / count if count > 0 else 0.0
