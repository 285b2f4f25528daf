"""What a joining replica has not been sent yet, including what changes meanwhile.

Rows come before pods, so that a replica knows the node of each pod it gets.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from moorage.models import ObjectName

T = TypeVar("T")


class Keys(NamedTuple):
    """What to send: rows, UIDs of pods and names of other objects; is_last if there is no more."""

    rows: list[int]
    uids: list[str]
    objects: list[ObjectName]
    is_last: bool


class Backlog:
    """Everything that there was in the beginning, then what has changed since."""

    def __init__(
        self, rows: Iterable[int], uids: Iterable[str], objects: Iterable[ObjectName]
    ) -> None:
        """Begin with what there is; what changes while these are gone through is noted anyway."""
        self._rows = _Queue(rows)
        self._uids = _Queue(uids)
        self._objects = _Queue(objects)

    def note(self, key: int | str | ObjectName) -> None:
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
