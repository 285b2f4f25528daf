"""The kinds of service that get the state, and their messages."""

from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import grpc.aio

from moorage.v1 import binder_pb2, filter_pb2, scorer_pb2
from moorage.v1.filter_pb2_grpc import FilterServiceStub
from moorage.v1.scorer_pb2_grpc import ScorerServiceStub

RetryRequest = filter_pb2.FilterServiceFollowRetriesResponse

Problems = (
    filter_pb2.FilterServiceFollowProblemsResponse | scorer_pb2.ScorerServiceFollowProblemsResponse
)

Name = Literal["filter", "scorer", "binder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """How to talk to one kind of service.

    Attributes:
        name: The service's name.
        policy: The kind of plugins that it runs, as the policy calls it.
        request: Makes a message of the session.
        open: Opens a session on a channel; messages are written as bytes.
        follow_retries: Opens a stream of plugins that ask for retries, if it has some.
        follow_problems: Opens a stream of what fails in the background of plugins, if it has one.
    """

    name: Name
    policy: Literal["filter", "score", "bind"]
    request: Callable[..., Any]
    open: Callable[[grpc.aio.Channel], "grpc.aio.StreamStreamCall[bytes, Any]"]
    follow_retries: Callable[[grpc.aio.Channel], AsyncIterable[RetryRequest]] | None = None
    follow_problems: Callable[[grpc.aio.Channel], AsyncIterable[Problems]] | None = None


FILTER = ServiceKind(
    name="filter",
    policy="filter",
    request=filter_pb2.FilterServiceSessionRequest,
    open=lambda channel: channel.stream_stream(
        "/moorage.v1.FilterService/Session",
        response_deserializer=filter_pb2.FilterServiceSessionResponse.FromString,
    )(),
    follow_retries=lambda channel: FilterServiceStub(channel).FollowRetries(
        filter_pb2.FilterServiceFollowRetriesRequest()
    ),
    follow_problems=lambda channel: FilterServiceStub(channel).FollowProblems(
        filter_pb2.FilterServiceFollowProblemsRequest()
    ),
)

SCORER = ServiceKind(
    name="scorer",
    policy="score",
    request=scorer_pb2.ScorerServiceSessionRequest,
    open=lambda channel: channel.stream_stream(
        "/moorage.v1.ScorerService/Session",
        response_deserializer=scorer_pb2.ScorerServiceSessionResponse.FromString,
    )(),
    follow_problems=lambda channel: ScorerServiceStub(channel).FollowProblems(
        scorer_pb2.ScorerServiceFollowProblemsRequest()
    ),
)


def binder_of(holder: str) -> ServiceKind:
    """Return the binder, which gets the state of *holder* and no cycles.

    Binds go over a stream of their own.
    """
    return ServiceKind(
        name="binder",
        policy="bind",
        request=partial(binder_pb2.BinderServiceFollowStateRequest, holder=holder),
        open=lambda channel: channel.stream_stream(
            "/moorage.v1.BinderService/FollowState",
            response_deserializer=binder_pb2.BinderServiceFollowStateResponse.FromString,
        )(),
    )
