"""What a user can set about shadows."""

from dataclasses import dataclass

from gateway.settings.edge import EdgeSettings
from moorage_host.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowSettings(EdgeSettings):
    """Settings of shadows; the gateway's own settings extend these."""

    shadow_timeout: float = setting(
        0.2,
        "Time that a replica has for a phase of a shadow; see `shadow` in the policy.",
        unit="seconds",
        minimum=0.001,
    )
    shadow_disagreements: int = setting(
        100,
        "Newest disagreements that are kept of the shadow of each profile; one takes about 1 kB.",
        minimum=0,
    )
