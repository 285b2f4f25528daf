"""The two kinds of service that have sessions, and their messages."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import grpc.aio

from moorage.v1 import filter_pb2, filter_pb2_grpc, scorer_pb2, scorer_pb2_grpc

Name = Literal["filter", "scorer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How to talk to one kind of service.

    Attributes:
        name: The service's name.
        policy: The kind of plugins that it runs, as the policy calls it.
        request: Makes a message of the session from `state`, `cycle` and, for the scorer, `top`.
        open: Opens a session on a channel.
    """

    name: Name
    policy: Literal["filter", "score"]
    request: Callable[..., Any]
    open: Callable[[grpc.aio.Channel], "grpc.aio.StreamStreamCall[Any, Any]"]


FILTER = Kind(
    name="filter",
    policy="filter",
    request=filter_pb2.FilterServiceSessionRequest,
    open=lambda channel: filter_pb2_grpc.FilterServiceStub(channel).Session(),
)

SCORER = Kind(
    name="scorer",
    policy="score",
    request=scorer_pb2.ScorerServiceSessionRequest,
    open=lambda channel: scorer_pb2_grpc.ScorerServiceStub(channel).Session(),
)
