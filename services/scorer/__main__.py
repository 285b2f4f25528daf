"""Runs the scorer service: `python -m services.scorer`."""

from moorage import ScorePlugin
from moorage.v1.scorer_pb2_grpc import add_ScorerServiceServicer_to_server
from moorage_host.plugins.registry import load_registry
from moorage_host.process.lifecycle import run
from moorage_host.rpc.serve import ServiceDefinition, serve
from moorage_host.settings import parse_settings
from services.scorer.plugins import BUILT_INS
from services.scorer.servicer import ScorerServicer
from services.scorer.settings import ScorerSettings


def main() -> None:
    """Serve until SIGTERM."""
    settings = parse_settings(ScorerSettings, "python -m services.scorer")
    definition = ServiceDefinition(
        name="scorer",
        grpc_name="moorage.v1.ScorerService",
        create=lambda: ScorerServicer(
            load_registry(ScorePlugin, BUILT_INS, settings.plugin),
            cycle_state_bytes=settings.max_cycle_state_bytes,
            max_nodes=settings.max_nodes,
        ),
        register=add_ScorerServiceServicer_to_server,
    )
    run(serve(definition, settings))


if __name__ == "__main__":
    main()
