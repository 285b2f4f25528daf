"""Runs the scorer service: `python -m services.scorer`."""

from moorage_host.process.lifecycle import run
from moorage_host.rpc.serve import serve
from moorage_host.rpc.settings import CycleSettings
from moorage_host.settings import parse_settings
from services.scorer.servicer import scorer_service


def main() -> None:
    """Serve until SIGTERM."""
    settings = parse_settings(CycleSettings, "python -m moorage_apps services.scorer")
    run(serve(scorer_service(settings), settings))


if __name__ == "__main__":
    main()
