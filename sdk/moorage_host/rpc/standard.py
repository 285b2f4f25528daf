"""The gRPC services that every server has in addition to its own: health and reflection."""

from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from moorage_host.rpc.descriptors import CompletePool
from moorage_host.rpc.errors import CallError


class _HealthServicer(health.aio.HealthServicer):  # type: ignore[misc, name-defined]
    """The library's, which has no `List`: Check and Watch name the service they are about."""

    async def List(self, request: Any, context: Any) -> Any:  # noqa: N802 - a method of the proto
        """Refuse politely."""
        del request, context
        raise CallError(grpc.StatusCode.UNIMPLEMENTED, "List is not implemented; call Check")


class Health:
    """`grpc.health.v1` for one service, under its full name and under the empty one.

    Load balancers of other processes watch the full name; probes by hand ask for the empty one.
    """

    def __init__(self, grpc_name: str, server: grpc.aio.Server) -> None:
        self._servicer: Any = _HealthServicer()
        self._grpc_name = grpc_name
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)  # type: ignore[no-untyped-call]

    async def serving(self) -> None:
        """Report SERVING."""
        await self._servicer.set(self._grpc_name, health_pb2.HealthCheckResponse.SERVING)

    async def shut_down(self) -> None:
        """Report NOT_SERVING from here on."""
        await self._servicer.enter_graceful_shutdown()


def add_reflection(grpc_name: str, server: grpc.aio.Server) -> None:
    """Let clients ask which methods and messages there are."""
    names = (grpc_name, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server, CompletePool())  # type: ignore[no-untyped-call]
