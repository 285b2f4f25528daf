"""Runs the binder service: `python -m services.binder`."""

import asyncio

from moorage.rpc.serve import serve
from moorage.settings import parse_settings
from services.binder.servicer import binder_service
from services.binder.settings import BinderSettings


def main() -> None:
    """Serve until SIGTERM."""
    settings = parse_settings(BinderSettings, "python -m services.binder")
    asyncio.run(serve(binder_service(settings), settings))


if __name__ == "__main__":
    main()
