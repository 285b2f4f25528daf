"""Puts changes of the cluster state on the wire."""

from collections.abc import Iterator

from gateway.cluster.state import Changes
from moorage.models import encode
from moorage.v1 import types_pb2 as pb

PART = 1000
"""Objects in one part of a full snapshot; a part is applied in one go."""


def delta(changes: Changes) -> pb.State | None:
    """Return the message that makes a replica catch up; None if there is nothing to say."""
    state = pb.State(
        generation=changes.generation,
        nodes=[pb.NodeRow(row=row, json=content) for row, content in changes.nodes],
        removed_rows=changes.removed_rows,
        pods=[pb.PlacedPod(row=row, json=encode(pod)) for row, pod in changes.pods],
        removed_pods=changes.removed_pods,
    )
    said = state.nodes or state.removed_rows or state.pods or state.removed_pods
    return state if said else None


def full(changes: Changes, policy: pb.Policy) -> Iterator[pb.State]:
    """Return the messages of a full snapshot, in order: nodes come before the pods on them."""
    yield pb.State(generation=changes.generation, full=True, partial=True, policy=policy)
    for start in range(0, len(changes.nodes), PART):
        yield _part(changes, nodes=changes.nodes[start : start + PART])
    for start in range(0, len(changes.pods), PART):
        yield _part(changes, pods=changes.pods[start : start + PART])
    yield pb.State(generation=changes.generation)


def _part(changes: Changes, **objects: object) -> pb.State:
    part = delta(Changes(generation=changes.generation, **objects))  # type: ignore[arg-type]
    assert part is not None  # noqa: S101 - a part is never empty
    part.partial = True
    return part
