"""Runs the binder service: `python -m services.binder`."""

import asyncio

from moorage.rpc.serve import ServiceDefinition, serve
from moorage.settings import parse_settings
from moorage.v1.binder_pb2_grpc import add_BinderServiceServicer_to_server
from services.binder.servicer import BinderServicer
from services.binder.settings import BinderSettings


def main() -> None:
    """Serve until SIGTERM."""
    settings = parse_settings(BinderSettings, "python -m services.binder")
    definition = ServiceDefinition(
        name="binder",
        grpc_name="moorage.v1.BinderService",
        create=lambda: BinderServicer(settings),
        register=add_BinderServiceServicer_to_server,
    )
    asyncio.run(serve(definition, settings))


if __name__ == "__main__":
    main()
