"""What can go wrong between a plugin and its measurements."""

from moorage.errors import MoorageError


class PrometheusError(MoorageError):
    """Prometheus did not answer a query, or not with what was asked for; see the message."""


class NoMeasurementsError(MoorageError):
    """A plugin has nothing to judge nodes by; equal causes give equal messages."""
