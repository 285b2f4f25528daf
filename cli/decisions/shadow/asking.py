"""Asks a gateway about its shadows."""

from collections.abc import Mapping
from typing import Any

from cli.shared.gateway.client import connected
from cli.shared.gateway.finding import GatewayError
from cli.shared.gateway.options import GatewayOptions
from moorage.errors import ConfigurationError, suggestion

Report = Mapping[str, Any]
"""What the gateway answers about the shadow of one profile; see `gateway.whatif.shadow_report`."""

NONE = (
    "no profile has a shadow: write `shadow` into one of the policy, "
    "see docs/how-to/operate/shadow.md of Moorage"
)


async def ask(options: GatewayOptions, profile: str) -> list[Report]:
    """Return the reports about the shadows of all profiles, or of one.

    Raises:
        ConfigurationError: There is none.
        GatewayError: The gateway gives no answer; the message has the next step.
    """
    async with connected(options) as gateway:
        answer = await gateway.get("/shadow")
    try:
        reports: list[Report] = answer["profiles"]
        names = [str(report["profile"]) for report in reports]
    except (KeyError, TypeError) as error:
        raise GatewayError(
            f"{gateway.url}/shadow answers something else: is it the gateway's admin port?"
        ) from error
    if not reports:
        raise ConfigurationError(NONE)
    if profile and profile not in names:
        near = suggestion(profile, names) or f"; those with one: {', '.join(names)}"
        raise ConfigurationError(f"profile `{profile}` has no shadow{near}")
    return [report for report in reports if profile in ("", report["profile"])]
