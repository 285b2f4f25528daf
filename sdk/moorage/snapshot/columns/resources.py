"""Columns of amounts by resource."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from moorage.snapshot.columns.encoded import resized

Amounts = npt.NDArray[np.int64]
"""Millicores of "cpu", bytes or counts of everything else, one for each node."""

DENSE_FROM = 16
"""A resource gets an array when one in so many rows has some of it."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

SPARSE_FROM = 64
"""An array goes when fewer than one in so many rows has some of its resource."""


class ResourceColumns:
    """Amounts of every resource that some node has, or some pod asks for, by row.

    Anybody who may create a pod can make up resources. So only those that many rows have get an
    array over all rows; the others are kept row by row. Memory depends on the amounts that there
    are, not on how many resources were ever seen.

    Attributes:
        common: The resources with an array.
    """

    def __init__(self, capacity: int) -> None:
        self.common: dict[str, Amounts] = {}
        # Of these resources, the number of rows that are not 0.
        self._used: dict[str, int] = {}
        # The resources without an array: amounts by row, and back.
        self._rare: dict[str, dict[int, int]] = {}
        self._rare_at: dict[int, set[str]] = {}
        self._capacity = capacity

    @property
    def arrays(self) -> int:
        """How many resources have an array over all rows."""
        return len(self.common)

    def __len__(self) -> int:
        """Return how many resources some row has."""
        return len(self.common) + len(self._rare)

    def add(self, row: int, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Add *amounts* to *row*, or take them away with a *sign* of -1."""
        for resource, amount in amounts.items():
            if not amount:
                continue
            column = self.common.get(resource)
            if column is None:
                self._add_rare(row, resource, sign * amount)
                continue
            before = column.item(row)
            after = before + sign * amount
            if not INT64_MIN <= after <= INT64_MAX:
                after = _wrapped(after)
            column[row] = after
            if not before or not after:
                self._used[resource] += (after != 0) - (before != 0)
                if self._used[resource] * SPARSE_FROM < self._capacity:
                    self._to_rare(resource)

    def resize(self, capacity: int) -> None:
        """Make room for *capacity* rows; rows beyond them are empty and go."""
        self._capacity = capacity
        self.common = {name: resized(column, capacity) for name, column in self.common.items()}

    def select(self, resource: str, rows: npt.NDArray[np.intp]) -> Amounts:
        """Return the amounts of *resource* at *rows*; 0 where there is none."""
        column = self.common.get(resource)
        if column is not None:
            return column.take(rows)
        rare = self._rare.get(resource)
        return np.zeros(len(rows), np.int64) if rare is None else self._as_array(rare).take(rows)

    def amount(self, resource: str, row: int) -> int:
        """Return the amount of *resource* at *row*; 0 if there is none."""
        column = self.common.get(resource)
        if column is not None:
            return column.item(row)
        return self._rare.get(resource, {}).get(row, 0)

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
        self.common[resource], self._used[resource] = self._as_array(rows), len(rows)

    def _to_rare(self, resource: str) -> None:
        amounts = self.common.pop(resource)
        del self._used[resource]
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
