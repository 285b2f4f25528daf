"""Measurements of nodes for plugins: from Prometheus, polled in the background, or annotations.

`import moorage` does not load this, and this does not load aiohttp before a source starts.
"""

from moorage.measurements.in_flight import Expected, InFlight, InFlightArguments
from moorage.measurements.plugin import (
    MISSING,
    MeasuringPlugin,
    NoMeasurementsError,
    OnMissing,
    PrometheusError,
    annotated_numbers,
    fill_missing,
    mark_missing,
)
from moorage.measurements.prometheus.query import (
    PRESETS,
    Address,
    Duration,
    Layout,
    Measure,
    Preset,
    PrometheusSettings,
    positive,
    quoted,
    rate,
    time_range,
)
from moorage.measurements.prometheus.source import PrometheusSource

__all__ = [
    "MISSING",
    "PRESETS",
    "Address",
    "Duration",
    "Expected",
    "InFlight",
    "InFlightArguments",
    "Layout",
    "Measure",
    "MeasuringPlugin",
    "NoMeasurementsError",
    "OnMissing",
    "Preset",
    "PrometheusError",
    "PrometheusSettings",
    "PrometheusSource",
    "annotated_numbers",
    "fill_missing",
    "mark_missing",
    "positive",
    "quoted",
    "rate",
    "time_range",
]
