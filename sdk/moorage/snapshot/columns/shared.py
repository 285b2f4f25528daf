"""Numbers for what many pods have in common, so that one array element stands for all of them."""

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

_fingerprint = msgspec.msgpack.Encoder().encode


def _key(value: object) -> bytes:
    try:
        return _fingerprint(value)
    except OverflowError:  # an integer of more than 64 bits: legal in JSON
        return repr(value).encode()


class Shared(Generic[T]):
    """Counts who uses a value; its number is given away again when nobody does.

    Number 0 stands for no value. Values are compared by what msgspec makes of them.
    """

    def __init__(self) -> None:
        self._number_of: dict[bytes, int] = {}
        self._keys: list[bytes] = [b""]
        self._uses: list[int] = [0]
        self._values: list[T | None] = [None]
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return how many values are in use."""
        return len(self._number_of)

    @property
    def bound(self) -> int:
        """The smallest number that was never used."""
        return len(self._values)

    def use(self, value: T) -> int:
        """Return the number of *value*, which has one more user."""
        key = _key(value)
        number = self._number_of.get(key)
        if number is None:
            number = self._number(key, value)
            self.added(number, value)
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Note that the value with this number has one user less."""
        if number == 0:
            return
        self._uses[number] -= 1
        if self._uses[number]:
            return
        self.removed(number, self.value(number))
        del self._number_of[self._keys[number]]
        self._keys[number], self._values[number] = b"", None
        self._free.append(number)

    def items(self) -> Iterator[tuple[int, T]]:
        """Yield the values in use, with their numbers."""
        return ((n, value) for n, value in enumerate(self._values) if value is not None)

    def value(self, number: int) -> T:
        """Return the value with this number, which is in use."""
        value = self._values[number]
        if value is None:
            raise KeyError(f"number {number} is not in use")
        return value

    def added(self, number: int, value: T) -> None:
        """Called for a value with its first user."""

    def removed(self, number: int, value: T) -> None:
        """Called for a value that has lost its last user."""

    def _number(self, key: bytes, value: T) -> int:
        if self._free:
            number = self._free.pop()
            self._keys[number], self._values[number] = key, value
        else:
            number = len(self._values)
            self._keys.append(key)
            self._values.append(value)
            self._uses.append(0)
        self._number_of[key] = number
        return number
