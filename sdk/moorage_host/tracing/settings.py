"""Where spans are sent: the settings of every process that is a part of traces."""

from dataclasses import dataclass

from moorage_host.process.lifecycle import AdminSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingSettings(AdminSettings):
    """Settings of the processes whose spans make up a trace."""

    trace_endpoint: str = setting(
        "",
        "URL of an OpenTelemetry collector that takes OTLP over HTTP, such as "
        "http://127.0.0.1:4318; needs moorage[otel]. Without it, "
        "OTEL_EXPORTER_OTLP_ENDPOINT counts; without both there are no traces.",
    )
    trace_insecure: bool = setting(
        False,
        "Send spans in plain text to other machines too: they name pods and nodes.",
    )
    trace_flush_timeout: float = setting(
        2.0, "Time for spans that wait when the process ends.", unit="seconds", minimum=0
    )
    trace_queue: int = setting(
        4096,
        "Spans that may wait to be sent; more are dropped and counted.",
        unit="spans",
        minimum=1,
    )
