"""The kinds of service that get the state, their messages, and how a cycle is written into one."""

from collections.abc import AsyncIterable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import grpc.aio
import msgspec
import numpy as np
import numpy.typing as npt

from gateway.cycle import Cycle, NodeSet
from gateway.cycle.nodes import NodeRows, Positions
from moorage.models import encode
from moorage.v1 import binder_pb2, filter_pb2, scorer_pb2
from moorage.v1.filter_pb2_grpc import FilterServiceStub
from moorage.v1.scorer_pb2_grpc import ScorerServiceStub

RetryRequest = filter_pb2.FilterServiceFollowRetriesResponse

Problems = (
    filter_pb2.FilterServiceFollowProblemsResponse | scorer_pb2.ScorerServiceFollowProblemsResponse
)

Name = Literal["filter", "scorer", "binder"]


Stage = Literal["whole", "shard", "normalize"]


class Part(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one replica is asked about a cycle in one go.

    Rows refer to the state at the time of sending, which may differ when it is sent again.

    Attributes:
        nodes: The nodes of the phase.
        positions: Those of them that are asked about; None for all.
        size: How many these are.
        stage: A whole phase, the raw scores of a shard, or the normalisation of gathered scores.
        version: Only replicas with this version of plugins may answer; empty if any may.
        raw: The gathered scores by plugin, by position among all nodes.
        top: How many of the best nodes the answer lists.
        profile: Another profile than that of the pod: a shadow, whose work is not traced.
        rows: The rows of the nodes, if they must be those of an earlier moment.
    """

    nodes: NodeSet
    size: int
    positions: Positions | None = None
    stage: Stage = "whole"
    version: str = ""
    raw: Mapping[str, npt.NDArray[np.float64]] = {}
    top: int = 0
    profile: str = ""
    rows: NodeRows | None = None


def fill_filter(message: Any, cycle: Cycle, part: Part, rows: NodeRows) -> NodeRows:
    """Ask filter plugins about a part; return the rows that the answer will be about."""
    about = rows if part.positions is None else rows.subset(part.positions)
    _fill(message.cycle, cycle, part, about)
    return about


def fill_score(message: Any, cycle: Cycle, part: Part, rows: NodeRows) -> NodeRows:
    """Ask score plugins about a part; return the rows that the answer will be about."""
    about = rows if part.positions is None else rows.subset(part.positions)
    if part.stage == "shard":
        _fill(message.cycle, cycle, part, rows)
        message.shard = about.bitmap or b"\0"  # an empty bitmap would mean all nodes
        return about
    _fill(message.cycle, cycle, part, about)
    message.top, message.all_scores = part.top, True
    if part.raw:
        positions = about.positions
        for plugin, values in part.raw.items():
            message.raw.add(plugin=plugin, values=values[positions].astype("<f8").tobytes())
    return about


def _fill(message: Any, cycle: Cycle, part: Part, rows: NodeRows) -> None:
    message.profile = part.profile or cycle.profile
    message.pod.json = cycle.pod_json
    message.candidates = rows.bitmap
    if cycle.plugin:
        message.plugin = cycle.plugin
    if cycle.suspect:
        message.suspect = True
    for row, manifest in rows.given:
        message.overrides.add(row=row, json=encode(manifest))
    if cycle.traceparent and not part.profile:
        message.traceparent = cycle.traceparent
    if cycle.excluded_pods:
        message.excluded_pods.extend(cycle.excluded_pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKind:
    """How to talk to one kind of service.

    Attributes:
        name: The service's name.
        policy: The kind of plugins that it runs, as the policy calls it.
        request: Makes a message of the session.
        open: Opens a session on a channel; messages are written as bytes.
        fill: Writes what is asked about a cycle into a message, if the service takes part in any.
        follow_retries: Opens a stream of plugins that ask for retries, if it has some.
        follow_problems: Opens a stream of what fails in the background of plugins, if it has one.
    """

    name: Name
    policy: Literal["filter", "score", "bind"]
    request: Callable[..., Any]
    open: Callable[[grpc.aio.Channel], "grpc.aio.StreamStreamCall[bytes, Any]"]
    fill: Callable[[Any, Cycle, Part, NodeRows], NodeRows] = fill_filter
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
    fill=fill_score,
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
