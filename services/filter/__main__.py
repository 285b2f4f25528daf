"""Runs the filter service: `python -m services.filter`."""

from moorage import FilterPlugin
from moorage.v1.filter_pb2_grpc import add_FilterServiceServicer_to_server
from moorage_host.plugins.registry import load_registry
from moorage_host.process.lifecycle import run
from moorage_host.rpc.serve import ServiceDefinition, serve
from moorage_host.settings import parse_settings
from services.filter.plugins import BUILT_INS
from services.filter.servicer import FilterServicer
from services.filter.settings import FilterSettings


def main() -> None:
    """Serve until SIGTERM."""
    settings = parse_settings(FilterSettings, "python -m services.filter")
    definition = ServiceDefinition(
        name="filter",
        grpc_name="moorage.v1.FilterService",
        create=lambda: FilterServicer(
            load_registry(FilterPlugin, BUILT_INS, settings.plugin),
            cycle_state_bytes=settings.max_cycle_state_bytes,
            max_nodes=settings.max_nodes,
        ),
        register=add_FilterServiceServicer_to_server,
    )
    run(serve(definition, settings))


if __name__ == "__main__":
    main()
