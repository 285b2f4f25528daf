"""The kinds of service that get the state, and the streams that each has."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import grpc.aio

from moorage.backoff import Backoff
from moorage.v1 import binder_pb2, replica_pb2
from moorage.v1 import types_pb2 as pb
from moorage.v1.replica_pb2_grpc import ReplicaServiceStub

Name = Literal["filter", "scorer", "binder", "shadow-filter", "shadow-scorer"]

ReportRetry = Callable[[str, str, str], None]
"""Called with a plugin that asks for another attempt on pods that it rejected, why, and where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """One kind of service that gets the state.

    Attributes:
        name: The service's name, which its certificate proves.
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

    def answers(self, plugins: Iterable[pb.Plugin]) -> bool:
        """Whether a replica with these plugins is of this kind; it has the built-in ones at least.

        With certificates its name says so; in plain text an address may be another service's.
        """
        point = self.policy.capitalize()
        return not self.runs_cycles or any(point in each.extension_points for each in plugins)

    def open(self, channel: grpc.aio.Channel) -> "grpc.aio.StreamStreamCall[bytes, Any]":
        """Open the stream on a channel; messages are written as bytes."""
        return channel.stream_stream(self.method, response_deserializer=self.response.FromString)()


FILTER = ServiceKind(name="filter", policy="filter")
SCORER = ServiceKind(name="scorer", policy="score")

SHADOW_FILTER = replace(FILTER, name="shadow-filter")
SHADOW_SCORER = replace(SCORER, name="shadow-scorer")
"""Replicas of shadows alone: no certificate of theirs is that of a replica which decides."""


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


async def follow(
    channel: grpc.aio.Channel, retry: ReportRetry, problems: Callable[[Mapping[str, str]], None]
) -> None:
    """Take over what plugins of a replica ask for, and what fails behind; until cancelled."""
    stub = ReplicaServiceStub(channel)
    await asyncio.gather(
        _each(
            lambda: stub.FollowRetries(replica_pb2.FollowRetriesRequest()),
            lambda asked: retry(asked.plugin, asked.reason, asked.namespace),
        ),
        _each(
            lambda: stub.FollowProblems(replica_pb2.FollowProblemsRequest()),
            lambda reported: problems(dict(reported.problems)),
        ),
    )


async def _each(call: Callable[[], Any], take: Callable[[Any], None]) -> None:
    """Take what a stream says; one that ends begins again, as the session may go on."""
    backoff = Backoff(0.5, 30.0)
    while True:
        with suppress(grpc.aio.AioRpcError):
            async for message in call():
                take(message)
                backoff.reset()
        await asyncio.sleep(backoff.next())
