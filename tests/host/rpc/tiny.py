"""A tiny service, as small as a `__main__` can be; for tests in this process and in others."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from moorage.errors import ConfigurationError, PluginLoadError
from moorage.v1.binder_pb2 import (
    BinderServiceListPluginsRequest,
    BinderServiceListPluginsResponse,
    BinderServiceRetryPodsRequest,
    BinderServiceRetryPodsResponse,
    BindRequest,
    BindResponse,
    Outcome,
)
from moorage.v1.binder_pb2_grpc import BinderServiceServicer, add_BinderServiceServicer_to_server
from moorage_host.rpc.serve import ServerSettings, ServiceDefinition, Servicer, serve
from moorage_host.settings import parse_settings, setting

SERVICE = "moorage.v1.BinderService"


@dataclass(frozen=True, slots=True, kw_only=True)
class TinySettings(ServerSettings):
    failing: str = setting("", "What goes wrong: create, start or ready.")
    log_queue: int = setting(2000, "Log lines that may wait to be written.")
    log_repeats: int = setting(20, "Warnings of the same event in a row.")
    log_traceback_interval: float = setting(60.0, "Between two tracebacks.", unit="seconds")


class TinyServicer(Servicer, BinderServiceServicer):
    def __init__(self, failing: str = "") -> None:
        if failing == "create":
            raise PluginLoadError("cannot load plugin hot.py:\n  line 3: no class found")
        self.failing = failing
        self.binding = asyncio.Event()
        self.draining = asyncio.Event()
        self.unstuck = asyncio.Event()
        self.stopped = False
        self.peers: list[str] = []

    async def start(self) -> None:
        if self.failing == "start":
            raise ConfigurationError("no such cluster")

    async def drain(self) -> None:
        self.draining.set()

    async def stop(self) -> None:
        self.stopped = True

    def checks(self) -> dict[str, Any]:
        return {"cluster": lambda: "no such cluster" if self.failing == "ready" else None}

    async def Bind(self, request: BindRequest, context: Any) -> BindResponse:
        """Bind at once, or on a node called "slow" at the drain, or on one called "stuck" later."""
        self.peers.append(context.peer())
        if request.node in ("slow", "stuck"):
            self.binding.set()
            os.write(1, b'{"event":"binding"}\n')
            await (self.draining if request.node == "slow" else self.unstuck).wait()
        return BindResponse(outcome=Outcome.OUTCOME_BOUND)

    def Session(self, request_iterator: Any, context: Any) -> AsyncIterator[Any]:
        raise NotImplementedError

    def FollowState(self, request_iterator: Any, context: Any) -> Any:
        raise NotImplementedError

    async def Barrier(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    async def RetryPods(
        self, request: BinderServiceRetryPodsRequest, context: Any
    ) -> BinderServiceRetryPodsResponse:
        raise NotImplementedError

    async def ListPlugins(
        self, request: BinderServiceListPluginsRequest, context: Any
    ) -> BinderServiceListPluginsResponse:
        return BinderServiceListPluginsResponse()


def tiny(failing: str = "") -> ServiceDefinition[TinyServicer]:
    return ServiceDefinition(
        name="tiny",
        grpc_names=(SERVICE,),
        create=lambda: TinyServicer(failing),
        register=add_BinderServiceServicer_to_server,
    )


def main() -> None:
    settings = parse_settings(TinySettings, "tiny")
    asyncio.run(serve(tiny(settings.failing), settings))


if __name__ == "__main__":
    main()
