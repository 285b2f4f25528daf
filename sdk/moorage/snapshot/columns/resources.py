"""Columns of amounts by resource."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moorage.snapshot.columns.sizes import resized

Amounts = npt.NDArray[np.int64]
"""Millicores of "cpu", bytes or counts of everything else, one for each node."""

DENSE_FROM = 16
"""A resource gets an array when one in so many rows has some of it."""

SPARSE_FROM = 64
"""An array goes when fewer than one in so many rows has some of its resource."""


@dataclass(slots=True)
class _Column:
    amounts: Amounts
    used: int  # rows that are not 0


class ResourceColumns:
    """Amounts of every resource that some node has, or some pod asks for, by row.

    Anybody who may create a pod can make up resources. So only those that many rows have get an
    array over all rows; the others are kept row by row. Memory depends on the amounts that there
    are, not on how many resources were ever seen.
    """

    def __init__(self, capacity: int) -> None:
        self._columns: dict[str, _Column] = {}
        # The resources without an array: amounts by row, and back.
        self._rare: dict[str, dict[int, int]] = {}
        self._rare_at: dict[int, set[str]] = {}
        self._capacity = capacity

    @property
    def arrays(self) -> int:
        """How many resources have an array over all rows."""
        return len(self._columns)

    def __len__(self) -> int:
        """Return how many resources some row has."""
        return len(self._columns) + len(self._rare)

    def add(self, row: int, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add *amounts* to *row*, or take them away with a *sign* of -1."""
        for resource, amount in amounts.items():
            if not amount:
                continue
            column = self._columns.get(resource)
            if column is None:
                self._add_rare(row, resource, sign * amount)
                continue
            before = column.amounts.item(row)
            after = _wrapped(before + sign * amount)
            column.amounts[row] = after
            column.used += (after != 0) - (before != 0)
            if column.used * SPARSE_FROM < self._capacity:
                self._to_rare(resource)

    def resize(self, capacity: int) -> None:
        """Make room for *capacity* rows; rows beyond them are empty and go."""
        self._capacity = capacity
        for column in self._columns.values():
            column.amounts = resized(column.amounts, capacity)

    def select(self, resource: str, rows: npt.NDArray[np.intp]) -> Amounts:
        """Return the amounts of *resource* at *rows*; 0 where there is none."""
        column = self._columns.get(resource)
        if column is not None:
            return column.amounts.take(rows)
        rare = self._rare.get(resource)
        return np.zeros(len(rows), np.int64) if rare is None else self._as_array(rare).take(rows)

    def at(self, row: int) -> dict[str, int]:
        """Return the amounts of *row* that are not 0."""
        common = {name: column.amounts.item(row) for name, column in self._columns.items()}
        amounts = {name: amount for name, amount in common.items() if amount}
        return amounts | {name: self._rare[name][row] for name in self._rare_at.get(row, ())}

    def _add_rare(self, row: int, resource: str, amount: int) -> None:
        rows = self._rare.setdefault(resource, {})
        total = _wrapped(rows.get(row, 0) + amount)
        if total:
            rows[row] = total
            self._rare_at.setdefault(row, set()).add(resource)
            if len(rows) * DENSE_FROM >= self._capacity:
                self._to_array(resource)
            return
        del rows[row]
        self._forget_rare(row, resource)
        if not rows:
            del self._rare[resource]

    def _forget_rare(self, row: int, resource: str) -> None:
        names = self._rare_at[row]
        names.remove(resource)
        if not names:
            del self._rare_at[row]

    def _to_array(self, resource: str) -> None:
        rows = self._rare.pop(resource)
        for row in rows:
            self._forget_rare(row, resource)
        self._columns[resource] = _Column(self._as_array(rows), len(rows))

    def _to_rare(self, resource: str) -> None:
        amounts = self._columns.pop(resource).amounts
        for row in np.flatnonzero(amounts).tolist():
            self._rare.setdefault(resource, {})[row] = amounts.item(row)
            self._rare_at.setdefault(row, set()).add(resource)

    def _as_array(self, amounts: Mapping[int, int]) -> Amounts:
        array = np.zeros(self._capacity, np.int64)
        array[list(amounts)] = list(amounts.values())
        return array


def _wrapped(amount: int) -> int:
    """Keep a sum within 64 bits so that taking the same amounts away again leads back to 0."""
    return (amount + 2**63) % 2**64 - 2**63
