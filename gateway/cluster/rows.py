"""Which node has which row, and when each row last changed."""

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moorage.models import NodeManifest, encode

Generations = npt.NDArray[np.int64]


class NodeEntry(NamedTuple):
    """A node with its row, and the node as JSON."""

    row: int
    manifest: NodeManifest
    content: bytes


class Rows:
    """The nodes by row. A row that is free is given to the next node.

    Attributes:
        of: The row of each node by name.
        version: Changes whenever `of` does.
        entries: The nodes by name.
        touched: The generation in which each row last changed: its node, or a pod on it. Longer
            than there are rows; the last item belongs to no row and never changes.
    """

    def __init__(self) -> None:
        self.of: dict[str, int] = {}
        self.version = 0
        self.touched: Generations = np.zeros(1024, np.int64)
        self.entries: dict[str, NodeEntry] = {}
        self._names: list[str | None] = []
        self._table: tuple[int, tuple[str | None, ...]] = (0, ())
        self._free: list[int] = []

    @property
    def capacity(self) -> int:
        """The number of rows in use or free; rows from here on have no node."""
        return len(self._names)

    @property
    def in_use(self) -> Iterator[int]:
        """The rows that have a node now."""
        return (row for row, name in enumerate(self._names) if name is not None)

    @property
    def names(self) -> tuple[str | None, ...]:
        """The node in each row, None where there is none: the same object until `of` changes."""
        if self._table[0] != self.version:
            self._table = self.version, tuple(self._names)
        return self._table[1]

    def name_at(self, row: int) -> str | None:
        """Return the name of the node in *row*."""
        return self._names[row] if row < len(self._names) else None

    def put(self, manifest: NodeManifest) -> int:
        """Take over a node and return its row."""
        name = manifest.metadata.name
        entry = self.entries.get(name)
        self.entries[name] = new = NodeEntry(
            row=entry.row if entry else self._take(name),
            manifest=manifest,
            content=encode(manifest),
        )
        return new.row

    def free(self, name: str) -> int | None:
        """Forget a node; return the row that it had."""
        entry = self.entries.pop(name, None)
        if entry is None:
            return None
        del self.of[name]
        self.version += 1
        self._names[entry.row] = None
        heapq.heappush(self._free, entry.row)
        return entry.row

    def touch(self, row: int, generation: int) -> None:
        """Note that a row changes in a generation."""
        if row >= len(self.touched) - 1:
            self.touched = np.concatenate([self.touched, np.zeros_like(self.touched)])
        self.touched[row] = generation

    def _take(self, name: str) -> int:
        if self._free:
            row = heapq.heappop(self._free)
            self._names[row] = name
        else:
            row = len(self._names)
            self._names.append(name)
        self.of[name] = row
        self.version += 1
        return row
