"""Measurements of nodes for plugins: from Prometheus, polled in the background, or annotations.

`import moorage` does not load this, and this does not load aiohttp before a source starts. Needs
`moorage[rpc]`.
"""

from moorage.metrics.annotations import annotated_numbers
from moorage.metrics.errors import NoMeasurementsError, PrometheusError
from moorage.metrics.in_flight import (
    Expected,
    InFlight,
    InFlightArguments,
)
from moorage.metrics.layouts import PRESETS, Layout, Preset
from moorage.metrics.missing import MISSING, OnMissing, fill_missing, mark_missing
from moorage.metrics.plugin import MeasuringPlugin
from moorage.metrics.query import Measure, quoted, rate, time_range
from moorage.metrics.settings import Address, Duration, PrometheusSettings, positive
from moorage.metrics.source import PrometheusSource

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
