"""Dictionary-encoded columns: each distinct value once, a small code for each row."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from moorage.models import NodeManifest
from moorage.verdicts import Mask

V = TypeVar("V", bound=Hashable)

SLACK = 1024
"""How many stale values a column may keep before it is encoded again."""


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
        self.values = values

    @cached_property
    def codes(self) -> npt.NDArray[np.int32]:
        """For each node the index into `values`."""
        return self._column[self._rows]

    def where(self, predicate: Callable[[V | None], bool]) -> Mask:
        """Ask *predicate* once for each distinct value; true where it accepts the node's."""
        return self.map(predicate, np.bool_)

    def isin(self, wanted: Collection[V | None]) -> Mask:
        """Return where the node's value is one of *wanted*, whatever the number of values."""
        mask = np.zeros(len(self._rows), np.bool_)
        for value in wanted:
            code = self._code_of.get(value)
            if code is not None:
                mask |= self.codes == code
        return mask

    def map(
        self, function: Callable[[V | None], object], dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[Any]:
        """Call *function* once for each distinct value; return its result for each node."""
        if len(self.values) > len(self._rows):
            used, codes = np.unique(self.codes, return_inverse=True)
            return np.array([function(self.values[code]) for code in used], dtype)[codes]
        results = np.array([function(value) for value in self.values], dtype)
        if (results == results[0]).all():
            return np.full(len(self._rows), results[0])
        return results[self.codes]


class EncodedColumn(Generic[V]):
    """The whole column behind `Encoded` selections, kept up as nodes change."""

    def __init__(self, read: Callable[[NodeManifest], V | None], capacity: int) -> None:
        self._read = read
        self._codes = np.zeros(capacity, np.int32)
        self._values: list[V | None] = [None]
        self._code_of: dict[V | None, int] = {None: 0}

    def set(self, row: int, manifest: NodeManifest | None) -> None:
        """Take over the node of *row*, or that it is gone."""
        value = None if manifest is None else self._read(manifest)
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self._values)
            self._values.append(value)
        self._codes[row] = code

    def resize(self, capacity: int) -> None:
        """Make room for *capacity* rows."""
        self._codes = np.concatenate([self._codes, np.zeros(capacity - len(self._codes), np.int32)])

    def is_stale(self, rows: int) -> bool:
        """Whether so many values have gone that encoding anew is worth its time."""
        return len(self._values) > 2 * rows + SLACK

    def select(self, rows: npt.NDArray[np.intp]) -> Encoded[V]:
        """Show the column to a selection of nodes."""
        return Encoded(self._codes, rows, self._code_of, self._values)
