"""How a replica is served in one of its roles: the methods of all replicas, and one for people."""

from collections.abc import Callable
from typing import Any, TypeVar

import grpc.aio

from moorage.v1.replica_pb2_grpc import add_ReplicaServiceServicer_to_server
from moorage_host.rpc.adhoc import ConcurrencyLimit
from moorage_host.rpc.serve import ServiceDefinition
from moorage_host.rpc.session import ReplicaServicer
from moorage_host.rpc.settings import CycleSettings

REPLICA_SERVICE = "moorage.v1.ReplicaService"

ReplicaServicerT = TypeVar("ReplicaServicerT", bound=ReplicaServicer[Any])


def replica_service(
    method: str,
    create: Callable[[], ReplicaServicerT],
    register: Callable[[ReplicaServicerT, grpc.aio.Server], None],
    settings: CycleSettings,
    name: str,
) -> ServiceDefinition[ReplicaServicerT]:
    """Return how a replica of filter or scorer is served.

    Args:
        method: What people call, such as "moorage.v1.FilterService/Filter".
        create: Makes the servicer.
        register: Adds the service of *method* to a server.
        settings: The limits of calls by hand.
        name: The short name.
    """

    def register_both(servicer: ReplicaServicerT, server: grpc.aio.Server) -> None:
        add_ReplicaServiceServicer_to_server(servicer, server)
        register(servicer, server)

    return ServiceDefinition(
        name=name,
        grpc_names=(method.partition("/")[0], REPLICA_SERVICE),
        create=create,
        register=register_both,
        limit=ConcurrencyLimit(
            f"/{method}",
            *(f"/{REPLICA_SERVICE}/{each}" for each in ("GetState", "ListPlugins")),
            calls=settings.adhoc_calls,
            waiting=settings.adhoc_waiting,
            message_bytes=settings.adhoc_bytes,
        ),
    )
