"""Runs the filter service: `python -m services.filter`."""

from moorage_host.process.lifecycle import run
from moorage_host.rpc.serve import serve
from moorage_host.rpc.settings import CycleSettings
from moorage_host.settings import parse_settings
from services.filter.servicer import filter_service


def main() -> None:
    """Serve until SIGTERM."""
    settings = parse_settings(CycleSettings, "python -m moorage_apps services.filter")
    run(serve(filter_service(settings), settings))


if __name__ == "__main__":
    main()
