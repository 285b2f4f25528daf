"""Measurements of nodes from Prometheus, as plugins use them.

self.source = PrometheusSource("my-plugin", self.args.prometheus, {"load": Measure(...)})
# start: await self.source.start(); stop: await self.source.stop()
# score: self.source.values(nodes, "load"), an array with NaN where nothing is known
"""

import asyncio
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.errors import ConfigurationError
from moorage.measurements.plugin import NoMeasurementsError
from moorage.measurements.prometheus.query import Measure, PrometheusSettings
from moorage.plugin.normalization import Scores
from moorage.snapshot import Nodes
from moorage.snapshot.verdicts import Mask
from moorage.units.durations import format_duration

if TYPE_CHECKING:
    from moorage.measurements.prometheus.poller import Poller

FIRST_ANSWER_SECONDS: Final = 2.0
"""How long `start` waits for the first answer; scheduling waits for `start`."""

OVERDUE: Final = 2.0
"""After how many intervals without an answer its age is worth a note."""


class PrometheusSource:
    """Some measures of all nodes, asked for in one query, again and again in the background.

    Sources with equal names, settings and measures share one query, across plugins and profiles
    they belong to.
    """

    def __init__(
        self, name: str, settings: PrometheusSettings, measures: Mapping[str, Measure]
    ) -> None:
        """Take what to measure; nothing is asked before `start`.

        Args:
            name: What is measured, for logs and metrics, such as "network-traffic".
            settings: Where to ask.
            measures: What to ask for, by name.

        Raises:
            ConfigurationError: The settings have no address.
        """
        if not settings.address:
            raise ConfigurationError(
                "the address of Prometheus is missing: write prometheus.address, such as "
                "http://prometheus-server.monitoring"
            )
        self._name = name
        self._settings = settings
        self._measures = measures
        self._poller: Poller | None = None

    async def start(self) -> None:
        """Begin to ask; wait a little for the first answer, so that the first cycle has it."""
        from moorage.measurements.prometheus.poller import join_poller

        self._poller = join_poller(self, self._name, self._settings, self._measures)
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_ANSWER_SECONDS):
                await self._poller.polled.wait()

    async def stop(self) -> None:
        """Ask no more, unless for others."""
        from moorage.measurements.prometheus.poller import leave_poller

        self._poller = None
        await leave_poller(self)

    @property
    def age(self) -> float:
        """The age of the latest answer in seconds; infinite before the first."""
        return time.monotonic() - self._poller.answered if self._poller else math.inf

    @property
    def is_fresh(self) -> bool:
        """Whether there is an answer that is not too old."""
        return self.age <= self._settings.max_age_seconds

    @property
    def problem(self) -> str:
        """Why there is no fresh answer that knows a node; empty if there is one."""
        if self._poller is None:
            return "no measurements yet: the plugin has not been started"
        if not self.is_fresh:
            return self._poller.problem or "the latest answer of Prometheus is older than maxAge"
        if not self._poller.values:
            return f"Prometheus at {self._settings.address} knows no node; see its log line"
        return ""

    def trouble(self, nodes: Nodes, missing: Mask) -> str:
        """Return how old the latest answer is if it is no recent one, or why there is none.

        Args:
            nodes: The nodes that it should know.
            missing: Where it did not.
        """
        if self._poller is None or math.isinf(self.age):
            return self._poller.problem if self._poller else self.problem
        reason = self._poller.problem
        if reason or self.age > OVERDUE * self._settings.interval_seconds:
            ago = f"Prometheus last answered {format_duration(round(self.age))} ago"
            return f"{ago}: {reason}" if reason else ago
        if self._poller.values and missing.all() and len(nodes):
            return self._comparison(nodes)
        return self.problem

    def check(self) -> None:
        """Refuse to go on without measurements.

        Raises:
            NoMeasurementsError: There is no fresh answer that knows a node.
        """
        if self.problem:
            raise NoMeasurementsError(self.problem)

    def values(self, nodes: Nodes, measure: str) -> Scores:
        """Return a measure of *nodes*; NaN where nothing is known, or nothing recent."""
        known = self._poller.values.get(measure) if self._poller and self.is_fresh else None
        if not known:
            return np.full(len(nodes), np.nan)
        layout = self._settings.layout
        keys = nodes.encoded(("moorage.measurements", layout.format), layout.key_of_node)
        return keys.map(lambda key: known.get(key or "", math.nan))

    def _comparison(self, nodes: Nodes) -> str:
        known = set().union(*self._poller.values.values()) if self._poller else set()
        own = self._settings.layout.key_of_node(nodes[0].manifest)
        if own in known:
            return f"Prometheus knows {own}, but not all that was asked about it"
        return f"Prometheus knows other nodes, such as {min(known)}, and not {own}"
