"""Puts changes of the cluster state on the wire."""

import asyncio
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress

from gateway.cluster.changes import Changes
from gateway.cluster.state import ClusterState
from gateway.cycle.nodes import RowIndex
from moorage.models import ObjectKind, encode
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.convert import kind_to_proto, object_name_to_proto

PART = 50
"""Objects in one part of a full snapshot: what is encoded, and applied, in one go.

A cycle may wait for a part, about a millisecond, whenever it waits for anything.
"""

PART_BYTES = 2 << 20
"""Bytes after which a message is sent in parts: replicas take no message of any length."""

MANY_CHANGES = 50
"""Changes that are not left for the next cycle to bring along."""

FEW_CHANGES_WAITS = (1, 2, 3, 4)
"""Intervals, one after the other, after which fewer changes are sent as well."""

LONGEST_SLEEP = 5.0
"""Seconds after which replicas that lack changes are looked for even if nothing has changed: one
may have joined, or could not take any more before."""

Kinds = frozenset[ObjectKind]


class StateFeed:
    """The cluster state as messages; replicas at the same generation share one.

    A message holds only objects of the kinds that its replica has.

    Attributes:
        state: The state.
        index: Finds the rows of nodes in it.
    """

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.index = RowIndex(state)
        self._newest: dict[Kinds, tuple[int, int, pb.State | None]] = {}

    def full(self, policy: pb.Policy, kinds: Kinds) -> Generator[pb.State, None, None]:
        """Yield the messages of a full snapshot, in order; see `ClusterState.everything`."""
        yield pb.State(
            generation=self.state.generation,
            full=True,
            partial=True,
            policy=policy,
            kinds=[kind_to_proto(kind) for kind in sorted(kinds)],
        )
        with closing(self.state.everything(PART)) as parts:
            for changes in parts:
                message = _message(changes, kinds)
                if message is not None:
                    message.partial = changes.partial
                    yield message
                elif not changes.partial:
                    yield pb.State(generation=changes.generation)

    def opening(self, generation: int, kinds: Kinds) -> Iterator[pb.State]:
        """Yield the messages that give a replica further *kinds*, with all their objects."""
        yield pb.State(generation=generation, kinds=[kind_to_proto(kind) for kind in sorted(kinds)])
        names = [name for name in self.state.objects if name.kind in kinds]
        for start in range(0, len(names), PART):
            found = self.state.objects.contents(names[start : start + PART])
            objects = [(name, content) for name, content in found if content is not None]
            message = _message(Changes(generation=generation, objects=objects), kinds)
            if message is not None:
                yield message

    async def follow(self, interval: float, send: Callable[[], None]) -> None:
        """Have many changes *sent* at once, so that cycles find them there; a few take longer.

        A cycle brings a few along at no cost, while a message of their own makes all sides work.
        Nothing happens while nothing changes: a timer would wake an idle gateway up all the time.
        """
        state, changed = self.state, asyncio.Event()
        state.listeners.append(changed.set)
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LONGEST_SLEEP):
                        await changed.wait()
                many = state.generation + MANY_CHANGES
                for wait in FEW_CHANGES_WAITS:
                    await asyncio.sleep(wait * interval)
                    if state.generation >= many:
                        break
                changed.clear()
                send()
        finally:
            state.listeners.remove(changed.set)

    def since(self, generation: int, kinds: Kinds) -> tuple[int, pb.State | None]:
        """Return the generation that a replica reaches, and the message, if there is any to send.

        Raises:
            LookupError: The replica is too far behind.
        """
        since, reached, message = self._newest.get(kinds, (0, 0, None))
        if (since, reached) != (generation, self.state.generation):
            changes = self.state.changes_since(generation)
            if changes is None:
                raise LookupError("the replica is too far behind for a delta")
            reached, message = changes.generation, _message(changes, kinds)
            self._newest[kinds] = (generation, reached, message)
        return reached, message


def in_parts(state: pb.State) -> Iterator[pb.State]:
    """Yield a state as messages that replicas take, in order; nearly always it is one.

    All but the last are partial. One is longer than the limit by an object at most, or by what is
    removed.
    """
    if state.ByteSize() <= PART_BYTES:
        yield state
        return
    part = pb.State()
    part.CopyFrom(state)
    del part.nodes[:], part.pods[:], part.objects[:]
    part.partial, size = True, part.ByteSize()
    for field in _LONG:
        for item in getattr(state, field):
            if size >= PART_BYTES:
                yield part
                part, size = pb.State(generation=state.generation, partial=True), 0
            getattr(part, field).append(item)
            size += item.ByteSize()
    part.partial = state.partial
    yield part


_LONG = ("nodes", "pods", "objects")
"""What a state has many of, in the order in which it is applied."""


def _message(changes: Changes, kinds: Kinds) -> pb.State | None:
    message = pb.State(
        generation=changes.generation,
        removed_rows=changes.removed_rows,
        removed_pods=changes.removed_pods,
        objects=[
            pb.Object(reference=object_name_to_proto(name), json=content)
            for name, content in changes.objects
            if name.kind in kinds
        ],
        removed_objects=[
            object_name_to_proto(name) for name in changes.removed_objects if name.kind in kinds
        ],
    )
    # Added in place: a message copies what its constructor gets.
    for row, content in changes.nodes:
        message.nodes.add(row=row, json=content)
    for row, pod in changes.pods:
        message.pods.add(row=row, json=encode(pod))
    has_pods_or_nodes = (
        message.nodes or message.removed_rows or message.pods or message.removed_pods
    )
    return message if has_pods_or_nodes or message.objects or message.removed_objects else None
