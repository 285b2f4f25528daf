"""Tables by what values are: they make equal values one object, and work with them once."""

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

import msgspec

from moorage.models.base import read_only

K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R")

CAPACITY: Final = 2_048
"""Different values that a table holds; the longest unused goes, which only costs some sharing.

Where every pod is unlike all others, a full table of specs takes some 10 MiB, for nothing.
"""

TEXT_CAPACITY: Final = 16_384
"""The same for texts, which take some 0.2 kB each."""

_fingerprint = msgspec.msgpack.Encoder().encode

_ignore_in_collections = ctypes.pythonapi.PyObject_GC_UnTrack
_ignore_in_collections.argtypes = [ctypes.py_object]
_ignore_in_collections.restype = None


class Interned(Generic[T]):
    """Values of one kind, which msgspec can encode. Two kinds need two tables.

    Args:
        prepare: Applied to a value that is new before it is kept.
    """

    def __init__(self, prepare: Callable[[T], T] | None = None) -> None:
        self._prepare = prepare
        self._table: OrderedDict[bytes, T] = OrderedDict()

    def __call__(self, value: T) -> T:
        """Return the first value that was equal to this one: this one, if it is new."""
        try:
            key = _fingerprint(value)
        except OverflowError:  # an integer of more than 64 bits: legal in JSON, not worth sharing
            return self._prepare(value) if self._prepare else value
        known = self._table.get(key)
        if known is None:
            return _kept(self._table, key, self._prepare(value) if self._prepare else value)
        self._table.move_to_end(key)
        return known


class ValueCache(Generic[T, R]):
    """Caches what *make* makes of values, by the parts that it reads, which msgspec can encode."""

    def __init__(self, make: Callable[[T], R]) -> None:
        self._make = make
        self._table: OrderedDict[bytes, R] = OrderedDict()

    def get(self, parts: object, value: T) -> R:
        """Return what was made of the first value whose *parts* were equal to these."""
        try:
            key = _fingerprint(parts)
        except OverflowError:  # as above
            return self._make(value)
        known = self._table.get(key)
        if known is None:
            return _kept(self._table, key, self._make(value))
        self._table.move_to_end(key)
        return known


class InternedTexts:
    """Names and labels; cheaper than `Interned`, because a text is its own key."""

    def __init__(self) -> None:
        self._table: OrderedDict[str, str] = OrderedDict()

    def __call__(self, text: str) -> str:
        """Return the first text that was equal to this one."""
        known = self._table.get(text)
        if known is None:
            return _kept(self._table, text, text, TEXT_CAPACITY)
        self._table.move_to_end(text)
        return known

    def of(self, texts: Mapping[str, str]) -> Mapping[str, str]:
        """Return the same keys and values, each the first that was equal; read-only."""
        table, found = self._table, dict[str, str]()
        # Without a call for each text: a node has dozens, and few of an event are new.
        for key, value in texts.items():
            if (known_key := table.get(key)) is None:
                known_key = self(key)
            else:
                table.move_to_end(key)
            if (known_value := table.get(value)) is None:
                known_value = self(value)
            else:
                table.move_to_end(value)
            found[known_key] = known_value
        kept = read_only(found)
        # The garbage collector follows all instances of subclasses of dict. Texts refer to nothing,
        # and with 150,000 pods of different labels each full collection took 80 ms longer.
        _ignore_in_collections(kept)
        return kept


def _kept(table: OrderedDict[K, T], key: K, value: T, capacity: int = CAPACITY) -> T:
    """Put a new value into a table; one that is full loses the longest unused."""
    if len(table) >= capacity:
        table.popitem(last=False)
    table[key] = value
    return value
