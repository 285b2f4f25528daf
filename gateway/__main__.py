"""Runs the gateway: `python -m gateway`."""

from gateway.app import serve
from gateway.settings import GatewaySettings
from moorage_host.process.lifecycle import run
from moorage_host.settings import parse_settings


def main() -> None:
    """Answer until SIGTERM."""
    run(serve(parse_settings(GatewaySettings, "python -m moorage_apps gateway")))


if __name__ == "__main__":
    main()
