"""Whether Moorage's picture of the cluster is the API server's."""

from collections.abc import Mapping, Sequence

import grpc
import grpc.aio

from moorage.v1 import filter_pb2 as pb
from moorage.v1.filter_pb2_grpc import FilterServiceStub

Places = Mapping[str, str]
"""The node of each pod, by namespace and name."""


async def picture(channel: grpc.aio.Channel, nodes: Sequence[str]) -> Places:
    """Return which pods the gateway has shown to a filter replica, and where."""
    request = pb.FilterServiceGetStateRequest(node_names=nodes)
    answer = await FilterServiceStub(channel).GetState(request, timeout=5)
    return {pod: node.name for node in answer.nodes for pod in node.pods}


def difference(seen: Places, real: Places) -> str:
    """Return in one sentence how two pictures differ, nothing if they do not."""
    ghosts = [name for name in seen if name not in real]
    missing = [name for name in real if name not in seen]
    moved = [name for name in real if seen.get(name, real[name]) != real[name]]
    if not (ghosts or missing or moved):
        return ""
    return f"{len(ghosts)} pods too many, {len(missing)} missing, {len(moved)} on another node"
