"""The cache's entries, by the signature of pods."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

SEEN_LIMIT = 1000
"""Signatures that are kept to recognise a pod that equals an earlier one."""

Entry = TypeVar("Entry")


class Store(Generic[Entry]):
    """The newest entries. All are dropped when what they are valid for changes."""

    def __init__(self, limit: int) -> None:
        """Keep at most *limit* entries."""
        self.limit = limit
        self._valid_for: Hashable = None
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._seen: OrderedDict[int, None] = OrderedDict()

    def get(self, key: bytes, valid_for: Hashable) -> Entry | None:
        """Return the entry of *key*, if there is one, valid for the same as before."""
        if valid_for != self._valid_for:
            self._valid_for = valid_for
            self._entries.clear()
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def seen_before(self, key: bytes) -> bool:
        """Whether *key* was asked for before. Most pods have no equal and need no entry."""
        hashed = hash(key)
        seen = hashed in self._seen
        self._seen[hashed] = None
        self._seen.move_to_end(hashed)
        if len(self._seen) > SEEN_LIMIT:
            self._seen.popitem(last=False)
        return seen

    def put(self, key: bytes, entry: Entry) -> None:
        """Keep an entry; the one that was used least recently goes."""
        self._entries[key] = entry
        if len(self._entries) > self.limit:
            self._entries.popitem(last=False)
