"""What the user can set in the gateway, for all its rooms."""

from gateway.settings.edge import EdgeSettings
from gateway.settings.gateway import GatewaySettings

__all__ = ["EdgeSettings", "GatewaySettings"]
