"""The kinds of service that get the state, their messages, and how a cycle is written into one."""

from collections.abc import Callable, Mapping
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
from moorage.v1 import binder_pb2, replica_pb2
from moorage.v1 import types_pb2 as pb

Name = Literal["filter", "scorer", "binder"]


Stage = Literal["whole", "shard", "normalize"]


class Part(msgspec.Struct, kw_only=True, eq=False):
    """What one replica is asked about a cycle in one go.

    Rows refer to the state at the time of sending, which may differ when it is sent again.

    Attributes:
        nodes: The nodes of the phase.
        positions: Those of them that are asked about; None for all.
        size: How many these are.
        stage: A whole phase, the raw scores of a shard, or the normalisation of gathered scores.
        version: Only replicas with this version of plugins may answer; empty if any may.
        raw: The gathered scores by plugin, by position among all nodes.
        profile: Another profile than that of the pod: a shadow, whose work is not traced.
        rows: The rows of the nodes, if they must be those of an earlier moment.
    """

    nodes: NodeSet
    size: int
    positions: Positions | None = None
    stage: Stage = "whole"
    version: str = ""
    raw: Mapping[str, npt.NDArray[np.float64]] = {}
    profile: str = ""
    rows: NodeRows | None = None


def fill(cycle: Cycle, part: Part, rows: NodeRows, message: pb.Cycle) -> NodeRows:
    """Write what is asked about a cycle; return the rows that the answer will be about."""
    about = rows if part.positions is None else rows.subset(part.positions)
    message.candidates = about.bitmap if part.stage != "shard" else rows.bitmap
    if part.stage == "shard":
        message.shard = about.bitmap or b"\0"  # an empty bitmap would mean all nodes
    for plugin, values in part.raw.items():
        gathered = values[about.positions].astype("<f8")
        message.raw.add(plugin=plugin, raw=gathered.tobytes())
    message.profile = part.profile or cycle.profile
    message.pod.json = cycle.pod_json
    if cycle.plugin:
        message.plugin = cycle.plugin
    if cycle.refused:
        message.refused.update(cycle.refused)
    for row, manifest in about.given:
        message.overrides.add(row=row, json=encode(manifest))
    if cycle.traceparent and not part.profile:
        message.traceparent = cycle.traceparent
    if cycle.excluded_pods:
        message.excluded_pods.extend(cycle.excluded_pods)
    return about


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
