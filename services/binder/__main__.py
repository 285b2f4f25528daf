"""Runs the binder service: `python -m services.binder`."""

from moorage_host.process.lifecycle import run
from moorage_host.rpc.serve import serve
from moorage_host.settings import parse_settings
from services.binder.servicer import binder_service
from services.binder.settings import BinderSettings


def main() -> None:
    """Serve until SIGTERM."""
    settings = parse_settings(BinderSettings, "python -m moorage_apps services.binder")
    run(serve(binder_service(settings), settings))


if __name__ == "__main__":
    main()
