"""Tables by what values are: they make equal values one object, and work with them once."""

import ctypes
from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

import msgspec

from moorage.models.base import read_only

T = TypeVar("T")
R = TypeVar("R")

CAPACITY: Final = 4_096
"""Different values that a table holds; a full table starts again, which only costs some sharing.

Where every pod is unlike all others, a full table of specs takes some 20 MiB, for nothing.
"""

TEXT_CAPACITY: Final = 131_072
"""The same for texts: a large cluster has as many names of nodes as it has nodes."""

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
        self._table: dict[bytes, T] = {}

    def __call__(self, value: T) -> T:
        """Return the first value that was equal to this one: this one, if it is new."""
        try:
            key = _fingerprint(value)
        except OverflowError:  # an integer of more than 64 bits: legal in JSON, not worth sharing
            return self._prepare(value) if self._prepare else value
        known = self._table.get(key)
        return known if known is not None else self._keep(key, value)

    def _keep(self, key: bytes, value: T) -> T:
        if len(self._table) >= CAPACITY:
            self._table.clear()
        kept = self._table[key] = self._prepare(value) if self._prepare else value
        return kept


class ValueCache(Generic[R]):
    """Caches what is made of values that msgspec can encode, by value."""

    def __init__(self) -> None:
        self._table: dict[bytes, R] = {}

    def get(self, value: object, make: Callable[[], R]) -> R:
        """Return what *make* made of the first value that was equal to this one."""
        try:
            key = _fingerprint(value)
        except OverflowError:  # as above
            return make()
        known = self._table.get(key)
        return known if known is not None else self._keep(key, make())

    def _keep(self, key: bytes, made: R) -> R:
        if len(self._table) >= CAPACITY:
            self._table.clear()
        self._table[key] = made
        return made


class InternedTexts:
    """Names and labels; cheaper than `Interned`, because a text is its own key."""

    def __init__(self) -> None:
        self._table: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        """Return the first text that was equal to this one."""
        return self._room().setdefault(text, text)

    def of(self, texts: Mapping[str, str]) -> Mapping[str, str]:
        """Return the same keys and values, each the first that was equal; read-only."""
        keep = self._room().setdefault
        kept = read_only({keep(k, k): keep(value, value) for k, value in texts.items()})
        # The garbage collector follows all instances of subclasses of dict. Texts refer to nothing,
        # and with 150,000 pods of different labels each full collection took 80 ms longer.
        _ignore_in_collections(kept)
        return kept

    def _room(self) -> dict[str, str]:
        if len(self._table) >= TEXT_CAPACITY:
            self._table.clear()
        return self._table
