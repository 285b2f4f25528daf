"""Runs the filter service: `python -m services.filter`."""

from moorage import FilterPlugin
from moorage_host.plugins.registry import load_registry
from moorage_host.process.lifecycle import run
from moorage_host.rpc.serve import serve
from moorage_host.rpc.session import CycleSettings
from moorage_host.settings import parse_settings
from services.filter.plugins import BUILT_INS
from services.filter.servicer import FilterServicer, filter_service


def main() -> None:
    """Serve until SIGTERM."""
    settings = parse_settings(CycleSettings, "python -m services.filter")

    def create() -> FilterServicer:
        return FilterServicer(load_registry(FilterPlugin, BUILT_INS, settings.plugin), settings)

    run(serve(filter_service(settings, create), settings))


if __name__ == "__main__":
    main()
