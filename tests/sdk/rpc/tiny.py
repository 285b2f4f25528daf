"""A tiny service on its own process, as small as a `__main__` can be; the tests start it."""

import asyncio
import os
from dataclasses import dataclass
from typing import Any

from moorage.errors import ConfigurationError, PluginLoadError
from moorage.rpc.serve import ServerSettings, ServiceDefinition, Servicer, serve
from moorage.settings import parse_settings, setting
from moorage.v1.binder_pb2 import BindRequest, BindResponse, Outcome
from moorage.v1.binder_pb2_grpc import (
    BinderServiceServicer,
    add_BinderServiceServicer_to_server,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TinySettings(ServerSettings):
    failing: str = setting("", "What goes wrong: create or start.")


class TinyServicer(Servicer, BinderServiceServicer):
    def __init__(self, failing: str = "") -> None:
        if failing == "create":
            raise PluginLoadError("cannot load plugin hot.py:\n  line 3: no class found")
        self.failing = failing

    async def start(self) -> None:
        if self.failing == "start":
            raise ConfigurationError("no such cluster")

    async def stop(self) -> None:
        os.write(1, b"stopped\n")

    async def Bind(self, request: BindRequest, context: Any) -> BindResponse:
        """Answer, or wait for as long as the caller does if the node is called "slow"."""
        if request.node == "slow":
            os.write(1, b"binding\n")
            await asyncio.Event().wait()
        return BindResponse(outcome=Outcome.OUTCOME_BOUND)


def main() -> None:
    settings = parse_settings(TinySettings, "tiny")
    definition = ServiceDefinition(
        name="tiny",
        grpc_name="moorage.v1.BinderService",
        create=lambda: TinyServicer(settings.failing),
        register=add_BinderServiceServicer_to_server,
    )
    asyncio.run(serve(definition, settings))


if __name__ == "__main__":
    main()
