"""Runs the scorer service: `python -m services.scorer`."""

from moorage import ScorePlugin
from moorage_host.plugins.registry import load_registry
from moorage_host.process.lifecycle import run
from moorage_host.rpc.serve import serve
from moorage_host.rpc.session import CycleSettings
from moorage_host.settings import parse_settings
from services.scorer.plugins import BUILT_INS
from services.scorer.servicer import ScorerServicer, scorer_service


def main() -> None:
    """Serve until SIGTERM."""
    settings = parse_settings(CycleSettings, "python -m services.scorer")

    def create() -> ScorerServicer:
        return ScorerServicer(load_registry(ScorePlugin, BUILT_INS, settings.plugin), settings)

    run(serve(scorer_service(settings, create), settings))


if __name__ == "__main__":
    main()
