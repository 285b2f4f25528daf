"""What plugins keep in a pod's cycle for its bind (CycleState), between the two."""

from collections import OrderedDict
from collections.abc import Mapping

from moorage.plugin.cycle_state import JsonText, KeptValue, annotations_at, values_at

VALUE_BYTES = 100
"""What a value takes in memory in addition to its text, about."""


class _Kept:
    __slots__ = ("size", "values")

    def __init__(self) -> None:
        self.values: dict[str, KeptValue] = {}
        self.size = 0

    def add(self, key: str, value: KeptValue) -> None:
        self.values.setdefault(key, KeptValue()).add(value)
        texts = (value.json, *value.by_node.values())
        self.size += sum(len(text) + VALUE_BYTES for text in texts)


class CycleStates:
    """The values of the newest attempts, by the pod's uid.

    If they take too much memory, those go first that came first.

    Attributes:
        by_uid: What is kept.
    """

    def __init__(self, limit: int) -> None:
        """Keep at most about *limit* bytes."""
        self._limit = limit
        self._size = 0
        self.by_uid: OrderedDict[str, _Kept] = OrderedDict()

    def begin(self, uid: str, values: Mapping[str, KeptValue]) -> None:
        """Begin an attempt on a pod with what its filter plugins keep."""
        self.end(uid)
        self.add(uid, values)

    def add(self, uid: str, values: Mapping[str, KeptValue]) -> None:
        """Add what plugins keep later in the same attempt; a key that is there gets new values."""
        for key, value in values.items():
            kept = self.by_uid.setdefault(uid, _Kept())
            before = kept.size
            kept.add(key, value)
            self._size += kept.size - before
        while self._size > self._limit:
            self.end(next(iter(self.by_uid)))

    def end(self, uid: str) -> None:
        """Drop what is kept for a pod."""
        if kept := self.by_uid.pop(uid, None):
            self._size -= kept.size

    def annotations(self, uid: str, node: str) -> Mapping[str, str]:
        """Return the annotations that a pod gets on a node."""
        kept = self.by_uid.get(uid)
        return annotations_at(kept.values, node) if kept else {}

    def at(self, uid: str, node: str) -> dict[str, JsonText]:
        """Return by key what is kept for a pod's bind to a node."""
        kept = self.by_uid.get(uid)
        return values_at(kept.values, node) if kept else {}
