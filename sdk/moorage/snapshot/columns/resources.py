"""Columns of amounts by resource."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from moorage.snapshot.columns.sizes import resized

Amounts = npt.NDArray[np.int64]
"""Millicores of "cpu", bytes or counts of everything else, one for each node."""


class ResourceColumns:
    """Amounts of every resource that some node has, or some pod asks for, by row."""

    def __init__(self, capacity: int) -> None:
        self._columns: dict[str, Amounts] = {}
        self._capacity = capacity

    def replace(self, row: int, amounts: Mapping[str, int]) -> None:
        """Set *row* to exactly *amounts*."""
        for column in self._columns.values():
            column[row] = 0
        self.add(row, amounts)

    def add(self, row: int, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add *amounts* to *row*, or take them away with a *sign* of -1."""
        for resource, amount in amounts.items():
            column = self._columns.get(resource)
            if column is None:
                column = self._columns[resource] = np.zeros(self._capacity, np.int64)
            column[row] += sign * amount

    def resize(self, capacity: int) -> None:
        """Make room for *capacity* rows; rows beyond them are empty and go."""
        self._capacity = capacity
        for resource, column in self._columns.items():
            self._columns[resource] = resized(column, capacity)

    def select(self, resource: str, rows: npt.NDArray[np.intp]) -> Amounts:
        """Return the amounts of *resource* at *rows*; 0 where there is none."""
        column = self._columns.get(resource)
        return np.zeros(len(rows), np.int64) if column is None else column.take(rows)

    def at(self, row: int) -> dict[str, int]:
        """Return the amounts of *row* that are not 0."""
        return {name: int(col[row]) for name, col in self._columns.items() if col[row]}
