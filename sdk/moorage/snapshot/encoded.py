"""Dictionary-encoded columns: each distinct value once, a small code for each row."""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

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
        codes: For each node the index into `values`.
        values: The distinct values; None stands for nodes that lack the property.
    """

    __slots__ = ("codes", "values")

    def __init__(self, codes: npt.NDArray[np.int32], values: list[V | None]) -> None:
        self.codes = codes
        self.values = values

    def where(self, predicate: Callable[[V | None], bool]) -> Mask:
        """Ask *predicate* once for each distinct value; true where it accepts the node's."""
        return self.map(predicate, np.bool_)

    def map(
        self, function: Callable[[V | None], object], dtype: npt.DTypeLike = np.float64
    ) -> npt.NDArray[np.generic]:
        """Call *function* once for each distinct value; return its result for each node."""
        results = np.array([function(value) for value in self.values], dtype)
        return results[self.codes]


class EncodedColumn(Generic[V]):
    """The whole column behind `Encoded` selections, kept up as nodes change."""

    def __init__(self, read: Callable[[NodeManifest], V | None], capacity: int) -> None:
        self._read = read
        self._codes = np.zeros(capacity, np.int32)
        self._values: list[V | None] = [None]
        self._code_of: dict[V | None, int] = {None: 0}
        self._count = 0

    def fill(self, manifests: Iterable[tuple[int, NodeManifest]]) -> None:
        """Encode all rows again and forget values that no node has any more."""
        self._values, self._code_of, self._count = [None], {None: 0}, 0
        self._codes[:] = 0
        for row, manifest in manifests:
            self.set(row, manifest)

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
        """Whether so many values have gone that `fill` is worth its time."""
        return len(self._values) > 2 * rows + SLACK

    def select(self, rows: npt.NDArray[np.intp]) -> Encoded[V]:
        """Show the column to a selection of nodes."""
        return Encoded(self._codes[rows], self._values)
