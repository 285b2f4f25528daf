"""Applies what a gateway sends to the replica of its session."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import grpc
import msgspec

from moorage.v1 import types_pb2 as pb
from moorage_host.plugins import Replica
from moorage_host.rpc.convert import kind_from_proto, object_name_from_proto
from moorage_host.rpc.errors import CallError

T = TypeVar("T")

YIELD_AFTER = 256
"""Objects of a state that are applied before other work of the process gets a turn."""

MISTAKES = (msgspec.DecodeError, KeyError, ValueError, RecursionError)
"""What `apply_state` raises."""


async def apply_state(replica: Replica, state: pb.State) -> None:
    """Apply all of a change but its policy and generation.

    Raises:
        msgspec.DecodeError: A node, pod or object is malformed.
        KeyError: A pod's row has no node, or an object is of a kind that was not announced.
        ValueError: A name or an amount is not one, two rows have nodes of one name, or there is
            more than a session may have.
        RecursionError: A node, pod or object is nested too deeply.
    """
    if state.full:
        replica.clear()
    snapshot = replica.snapshot
    for uid in state.removed_pods:
        snapshot.remove_pod(uid)
    for row in state.removed_rows:
        snapshot.remove_row(row)
    if state.nodes:
        await _in_parts([(n.row, n.json) for n in state.nodes], replica.set_nodes)
    if (state.nodes or state.removed_rows) and not state.partial:
        snapshot.check_names()
    if state.pods:
        await _in_parts([(p.row, p.json) for p in state.pods], replica.place_pods)
    if state.kinds or state.removed_kinds:
        replica.open_kinds(kind_from_proto(kind) for kind in state.kinds)
        snapshot.objects.close(kind_from_proto(kind) for kind in state.removed_kinds)
    for reference in state.removed_objects:
        snapshot.objects.remove(object_name_from_proto(reference))
    if state.objects:
        objects = [(object_name_from_proto(o.reference), o.json) for o in state.objects]
        await _in_parts(objects, replica.put_objects)


def check_room(sessions: int, most: int) -> None:
    """Refuse a session if so many are open already.

    Raises:
        CallError: They are (RESOURCE_EXHAUSTED).
    """
    if sessions >= most:
        message = f"{sessions} sessions are open, and no more may be"
        raise CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, message)


def refusal_of(error: Exception) -> CallError:
    """Return the caller's error for a state that cannot be applied."""
    message = f"cannot apply the state: {error}"
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, message)


async def _in_parts(objects: Sequence[T], apply: Callable[[Sequence[T]], None]) -> None:
    for start in range(0, len(objects), YIELD_AFTER):
        if start:  # a few changes, as most cycles bring along, are not worth a turn
            await asyncio.sleep(0)
        apply(objects[start : start + YIELD_AFTER])
