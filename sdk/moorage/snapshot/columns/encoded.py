"""Dictionary-encoded columns: each distinct value once, a small code for each row.

A condition of a selector is evaluated once for each value. What many pods have in common is one
number in the same way.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.models import Requirement
from moorage.rules import matches_requirement
from moorage.snapshot.verdicts import Mask

Element = TypeVar("Element", bound=np.generic)


def resized(column: npt.NDArray[Element], capacity: int) -> npt.NDArray[Element]:
    """Copy a column to another length: further rows are 0, rows beyond it go."""
    copy = np.zeros(capacity, column.dtype)
    kept = min(len(column), capacity)
    copy[:kept] = column[:kept]
    return copy


S = TypeVar("S")
V = TypeVar("V", bound=Hashable)

SLACK = 1024
"""How many stale values a column may keep before it is encoded again."""

MAX_ENCODED_COLUMNS = 128
"""How many label keys and the like are kept encoded; the longest unused makes room for another."""


class Encoded(Generic[V]):
    """What some nodes have of one property, such as a label or their taints.

    Attributes:
        values: The distinct values of the cluster; None stands for nodes that lack the property.
    """

    def __init__(
        self,
        column: npt.NDArray[np.int32],
        rows: npt.NDArray[np.intp],
        code_of: Mapping[V | None, int],
        values: Sequence[V | None],
    ) -> None:
        self._column = column
        self._rows = rows
        self._code_of = code_of
        self._codes: npt.NDArray[np.int32] | None = None
        self.values = values

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """For each node the index into `values`."""
        if self._codes is None:
            self._codes = self._column.take(self._rows)
        return self._codes

    def where(self, predicate: Callable[[V | None], bool]) -> Mask:
        """Ask *predicate* once for each distinct value; true where it accepts the node's."""
        return self.map(predicate, np.bool_)

    def isin(self, wanted: Collection[V | None]) -> Mask:
        """Return where the node's value is one of *wanted*."""
        mask = np.zeros(len(self._rows), np.bool_)
        for value in wanted:
            code = self._code_of.get(value)
            if code is not None:
                mask |= self.codes == code
        return mask

    def sums(self, amounts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Add up *amounts*, one for each node, by value; index the result by `codes`."""
        totals = np.bincount(self.codes, weights=amounts, minlength=len(self.values))
        return totals.astype(np.int64)

    def map(
        self, function: Callable[[V | None], object], dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[Any]:
        """Call *function* once for each distinct value; return its result for each node."""
        if len(self.values) > len(self._rows):
            used, codes = np.unique(self.codes, return_inverse=True)
            return np.array([function(self.values[code]) for code in used], dtype)[codes]
        results = [function(value) for value in self.values]
        table = np.array(results, dtype)
        if results.count(results[0]) == len(results):
            return np.full(len(self._rows), table[0])
        return table.take(self.codes)


class EncodedColumn(Generic[S, V]):
    """The whole column behind `Encoded` selections, kept up as what is read changes."""

    def __init__(self, read: Callable[[S], V | None], capacity: int) -> None:
        self._read = read
        self._codes = np.zeros(capacity, np.int32)
        self._values: list[V | None] = [None]
        self._code_of: dict[V | None, int] = {None: 0}

    def set(self, row: int, source: S | None) -> None:
        """Take over what is in *row*, or that it is gone."""
        value = None if source is None else self._read(source)
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self._values)
            self._values.append(value)
        self._codes[row] = code

    def resize(self, capacity: int) -> None:
        """Make room for *capacity* rows; rows beyond them are empty and go."""
        self._codes = resized(self._codes, capacity)

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        return len(self._codes)

    def is_stale(self, rows: int) -> bool:
        """Whether so many values have gone that encoding again is worth its time."""
        return len(self._values) > 2 * rows + SLACK

    def select(self, rows: npt.NDArray[np.intp]) -> Encoded[V]:
        """Show the column to a selection of nodes."""
        return Encoded(self._codes, rows, self._code_of, self._values)


class EncodedColumns(Generic[S]):
    """Columns by key over the same rows, each kept up from its first use on."""

    def __init__(self) -> None:
        self._columns: OrderedDict[Hashable, EncodedColumn[S, Any]] = OrderedDict()

    def get(
        self,
        key: Hashable,
        read: Callable[[S], Hashable | None],
        rows: Iterable[tuple[int, S]],
        count: int,
        capacity: int,
    ) -> EncodedColumn[S, Any]:
        """Return what *read* makes of *rows*, which are *count* of at most *capacity*."""
        column = self._columns.get(key)
        if column is None or column.is_stale(count):
            # A plugin's alarm may go off in the middle: keep the column only when it is complete.
            column = EncodedColumn(read, capacity)
            for row, source in rows:
                column.set(row, source)
            self._columns[key] = column
            if len(self._columns) > MAX_ENCODED_COLUMNS:
                self._columns.popitem(last=False)
        self._columns.move_to_end(key)
        return column

    def set(self, row: int, source: S | None) -> None:
        """Take over what is in *row*, or that it is gone."""
        for key, column in list(self._columns.items()):
            try:
                column.set(row, source)
                if column.is_stale(column.capacity):  # nobody has asked for it for long
                    del self._columns[key]
            except Exception:  # noqa: BLE001 - a plugin's code; it fails in its own cycle again
                del self._columns[key]

    def resize(self, capacity: int) -> None:
        """Make room for *capacity* rows; rows beyond them are empty and go."""
        for column in self._columns.values():
            column.resize(capacity)


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


def match_requirement(column: Encoded[Any], requirement: Requirement) -> Mask:
    """Return where the values of a label meet a condition on it.

    Raises:
        ValueError: The operator does not exist.
    """
    match requirement.operator:
        case "In":
            return column.isin(requirement.values)
        case "NotIn":
            return ~column.isin(requirement.values)
        case "Exists":
            return ~column.isin((None,))
        case "DoesNotExist":
            return column.isin((None,))
    return column.where(lambda value: _matches(requirement, value))


def _matches(requirement: Requirement, value: str | None) -> bool:
    return matches_requirement(requirement, {} if value is None else {requirement.key: value})
