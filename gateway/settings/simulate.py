"""Settings of what-if questions on the admin port."""

from dataclasses import dataclass

from gateway.settings.journal import JournalSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateSettings(JournalSettings):
    """How many questions are answered, and how large they may be."""

    simulate_calls: int = setting(
        2,
        "Questions at /simulate and /simulate/filter of the admin port that are answered at a "
        "time; the services answer them in their lane for calls by hand.",
        minimum=1,
    )
    simulate_waiting: int = setting(
        16, "Such questions that may wait for that; more are refused.", minimum=0
    )
    simulate_body_limit: int = setting(
        4_194_304, "The largest body of such a question.", unit="bytes", minimum=1024
    )
    simulate_timeout: float = setting(
        10.0, "How long a service may take for such a question.", unit="seconds", minimum=0.1
    )
