"""The kinds of service that get the state, their messages, and how a cycle is written into one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import grpc.aio

from moorage.v1 import binder_pb2, replica_pb2

Name = Literal["filter", "scorer", "binder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """One kind of service that gets the state.

    Attributes:
        name: The service's name.
        policy: The kind of plugins that it runs, as the policy calls it.
        method: The stream of its states, and of its cycles if it runs cycles.
        request: Makes a message of the stream.
        response: The type of its answers.
        runs_cycles: Whether it is a replica, which filters or scores.
    """

    name: Name
    policy: Literal["filter", "score", "bind"]
    method: str = "/moorage.v1.ReplicaService/Session"
    request: Callable[..., Any] = replica_pb2.SessionRequest
    response: Any = replica_pb2.SessionResponse
    runs_cycles: bool = True

    def open(self, channel: grpc.aio.Channel) -> "grpc.aio.StreamStreamCall[bytes, Any]":
        """Open the stream on a channel; messages are written as bytes."""
        return channel.stream_stream(self.method, response_deserializer=self.response.FromString)()


FILTER = ServiceKind(name="filter", policy="filter")
SCORER = ServiceKind(name="scorer", policy="score")


def binder_of(holder: str) -> ServiceKind:
    """Return the binder, which gets the state of *holder* and no cycles.

    Binds go over a stream of their own.
    """
    return ServiceKind(
        name="binder",
        policy="bind",
        method="/moorage.v1.BinderService/FollowState",
        request=partial(binder_pb2.BinderServiceFollowStateRequest, holder=holder),
        response=binder_pb2.BinderServiceFollowStateResponse,
        runs_cycles=False,
    )
