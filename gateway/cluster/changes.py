"""What replicas are sent of the cluster state: changes, or everything part by part."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

import msgspec

from moorage.models import ObjectName, Pod

T = TypeVar("T")

Key = int | str | ObjectName
"""A row, the UID of a pod, or the name of an object of an additional kind."""


class Keys(NamedTuple):
    """What changed, or is to be sent; `is_last` if there is no more."""

    rows: Sequence[int]
    uids: Sequence[str]
    objects: Sequence[ObjectName]
    is_last: bool = True


class Changes(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a replica needs to reach a generation.

    Attributes:
        generation: The generation that it reaches.
        nodes: New and changed nodes: row and JSON.
        removed_rows: Rows without a node.
        pods: New, changed and moved pods: row of the node, and the pod.
        removed_pods: UIDs of pods that are on no node.
        objects: New and changed objects of additional kinds, as JSON.
        removed_objects: Those that are gone.
        partial: Whether more must come until that generation is reached.
    """

    generation: int
    nodes: Sequence[tuple[int, bytes]] = ()
    removed_rows: Sequence[int] = ()
    pods: Sequence[tuple[int, Pod]] = ()
    removed_pods: Sequence[str] = ()
    objects: Sequence[tuple[ObjectName, bytes]] = ()
    removed_objects: Sequence[ObjectName] = ()
    partial: bool = False


class Backlog:
    """What a joining replica has not been sent yet: everything, and what changes meanwhile.

    Rows come before pods, so that a replica knows the node of each pod it gets.
    """

    def __init__(
        self, rows: Iterable[int], uids: Iterable[str], objects: Iterable[ObjectName]
    ) -> None:
        """Begin with what there is; what changes while these are gone through is noted anyway."""
        self._rows = _Queue(rows)
        self._uids = _Queue(uids)
        self._objects = _Queue(objects)

    def note(self, key: Key) -> None:
        """Note a change; several changes of one object count once."""
        if isinstance(key, int):
            self._rows.changed[key] = None
        elif isinstance(key, str):
            self._uids.changed[key] = None
        else:
            self._objects.changed[key] = None

    def take(self, size: int) -> Keys:
        """Return at most *size* keys to send next."""
        rows = self._rows.take(size)
        uids = self._uids.take(size - len(rows))
        objects = self._objects.take(size - len(rows) - len(uids))
        left = self._rows or self._uids or self._objects
        return Keys(rows, uids, objects, is_last=not left)


class _Queue(Generic[T]):
    def __init__(self, first: Iterable[T]) -> None:
        self.changed: dict[T, None] = {}
        self._first = (key for key in first if key not in self.changed)
        self._has_first = True

    def __bool__(self) -> bool:
        return self._has_first or bool(self.changed)

    def take(self, size: int) -> list[T]:
        taken = list(islice(self._first, size))
        if len(taken) < size:
            self._has_first = False
            more = min(size - len(taken), len(self.changed))
            taken += [self.changed.popitem()[0] for _ in range(more)]
        return taken
