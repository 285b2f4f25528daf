"""One question to Prometheus about all nodes, and the values of each in its answer.

Called by `poller` again and again, and where one answer is enough. aiohttp is loaded with the
first question, so that plugins and their tests do without it until something is asked.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from moorage.measurements.errors import PrometheusError
from moorage.measurements.prometheus.layouts import PRESETS, Layout, Preset
from moorage.measurements.prometheus.query import MEASURE_LABEL, Measure, query_text
from moorage.measurements.prometheus.settings import PrometheusSettings

Values = Mapping[str, Mapping[str, float]]
"""By measure and by the key of the node."""


class Sample(Protocol):
    """One series of an answer."""

    @property
    def metric(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def number(self) -> float:
        """Its value."""


async def ask(
    settings: PrometheusSettings, measures: Mapping[str, Measure], layout: Layout
) -> Sequence[Sample]:
    """Return the samples of all *measures* that name a node.

    Raises:
        PrometheusError: There was no answer in time, or it is an error or not a vector.
    """
    from moorage.measurements.prometheus import client

    samples = await client.query(settings, query_text(measures, layout))
    return [sample for sample in samples if layout.key_of(sample.metric)]


def by_measure(samples: Sequence[Sample], layout: Layout) -> Values:
    """Return the finite numbers among *samples*."""
    values: dict[str, dict[str, float]] = {}
    for sample in samples:
        if math.isfinite(sample.number):
            measure = values.setdefault(sample.metric.get(MEASURE_LABEL, ""), {})
            measure[layout.key_of(sample.metric)] = sample.number
    return values


async def nodes_by_preset(
    settings: PrometheusSettings, measures: Mapping[str, Measure]
) -> dict[Preset, int]:
    """Return the presets under which Prometheus knows nodes, and how many, asking for each."""
    return {
        preset: len({layout.key_of(sample.metric) for sample in samples})
        for preset, layout in PRESETS.items()
        if (samples := await _try(settings, measures, layout))
    }


async def _try(
    settings: PrometheusSettings, measures: Mapping[str, Measure], layout: Layout
) -> Sequence[Sample]:
    try:
        return await ask(settings, measures, layout)
    except PrometheusError:  # such as a join that is ambiguous here
        return ()
