"""Measurements of nodes for plugins: from Prometheus, polled in the background, or annotations.

`import moorage` does not load this, and this does not load aiohttp before a source starts. Needs
`moorage[rpc]`.
"""

from moorage.measurements.annotations import annotated_numbers
from moorage.measurements.errors import NoMeasurementsError, PrometheusError
from moorage.measurements.in_flight import (
    Expected,
    InFlight,
    InFlightArguments,
)
from moorage.measurements.missing import MISSING, OnMissing, fill_missing, mark_missing
from moorage.measurements.plugin import MeasuringPlugin
from moorage.measurements.prometheus.layouts import PRESETS, Layout, Preset
from moorage.measurements.prometheus.query import Measure, quoted, rate, time_range
from moorage.measurements.prometheus.settings import Address, Duration, PrometheusSettings, positive
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
