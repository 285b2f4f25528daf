"""Settings of the gateway about traces."""

from dataclasses import dataclass

from moorage_host.settings import setting
from moorage_host.tracing.settings import TracingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTracingSettings(TracingSettings):
    """Which cycles are traced; filter, scorer and binder follow the gateway."""

    trace_ratio: float = setting(
        0.01,
        "Share of the scheduling cycles that are traced, with their binds, if spans are sent.",
        minimum=0,
        maximum=1,
    )
