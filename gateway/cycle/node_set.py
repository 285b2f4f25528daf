"""From the names of a call to rows and back."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.calls import GivenNode
from gateway.cluster.state import ClusterState
from moorage.models import encode
from moorage.v1 import types_pb2 as pb

REMEMBERED = 12
"""Lists of names whose rows are remembered: a few for each scheduler amid a cycle."""

ALIKE = 2
"""Calls that named the same nodes as the one before, after which that is expected of the next."""

REST = 100
"""Times as long as it took to copy the rows they are not copied again."""

UNKNOWN = -1
"""The row of a node that is not known."""

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]
Rows = npt.NDArray[np.intp]
Value = TypeVar("Value", bound=np.generic)


class Candidates(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The nodes of a call, for one cycle.

    Whatever replicas say of them is in ascending order of their rows.

    Attributes:
        where: The row of each node, in the order of the call; UNKNOWN for those that have none.
        present: Which rows these are. The last item is that of UNKNOWN, and false.
        bitmap: The same as the protocol wants it.
        count: How many rows these are.
        overrides: Nodes that the call brought and that read differently here.
    """

    where: Rows
    present: Mask
    bitmap: bytes
    count: int
    overrides: Sequence[pb.NodeRow] = ()

    @classmethod
    def at(cls, where: Rows, capacity: int, overrides: Sequence[pb.NodeRow] = ()) -> "Candidates":
        """Make them of the row of each node; all rows are below *capacity*."""
        present = np.zeros(capacity + 1, np.bool_)
        present[where] = True
        present[UNKNOWN] = False
        bitmap = np.packbits(present, bitorder="little").tobytes().rstrip(b"\0")
        return cls(
            where=where,
            present=present,
            bitmap=bitmap,
            count=int.from_bytes(bitmap, "little").bit_count(),
            overrides=overrides,
        )

    @property
    def positions(self) -> Positions:
        """Where in the call the nodes that have a row stand, in ascending order of their rows."""
        position_of = np.zeros(len(self.present), np.intp)
        position_of[self.where] = np.arange(len(self.where))
        return position_of[self.present]

    @property
    def rows(self) -> Rows:
        """The rows, in ascending order: that of whatever replicas say."""
        return np.flatnonzero(self.present)

    def common(self, other: "Candidates") -> int:
        """Return how many rows both have."""
        least = min(len(self.present), len(other.present)) - 1
        return int(np.count_nonzero(self.present[:least] & other.present[:least]))

    @property
    def unknown(self) -> int:
        """How many nodes of the call have no row."""
        if self.count == len(self.where):
            return 0
        return int(np.count_nonzero(self.where == UNKNOWN))

    @property
    def distinct(self) -> bool:
        """Whether no node with a row is there twice."""
        return self.count + self.unknown == len(self.where)

    def among(self, positions: Positions) -> "Candidates":
        """Return those that stand at some positions; all nodes that the call brought stay known."""
        where = np.full(len(self.where), UNKNOWN)
        where[positions] = self.where[positions]
        return Candidates.at(where, len(self.present) - 1, self.overrides)

    def spread(self, values: npt.NDArray[Value], unknown: int) -> npt.NDArray[Value]:
        """Return the values of rows in the order of the call, and *unknown* where there is none.

        A name that the call has twice gets its value twice.
        """
        table = np.empty(len(self.present), values.dtype)
        table[UNKNOWN] = unknown
        table[self.present] = values
        return table[self.where]


class NodeLookup:
    """Finds the rows of calls' nodes; knows the newest lists of names again by identity.

    The score half of a cycle and the prioritize call come with the very list of the filter half.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._newest: deque[_Known] = deque(maxlen=REMEMBERED)
        self._index = _Index(state)
        self._last: _Known | None = None
        self._alike = 0

    @property
    def generation(self) -> int:
        """The generation of the state now."""
        return self._state.generation

    @property
    def rows_version(self) -> int:
        """Changes whenever a row gets another node."""
        return self._state.rows_version

    @property
    def capacity(self) -> int:
        """All rows are below it."""
        return self._state.capacity

    def find(
        self, names: Sequence[str], given: Sequence[GivenNode] | None, *, is_part: bool = False
    ) -> Candidates:
        """Look up the nodes of a call; nodes that it brought along are known for this cycle.

        Only a part of a call's nodes says nothing about which the next call will name.
        """
        known = self._known(names) if given is None else None
        if known is not None:
            return known.found
        where = _where(names, self._index.rows())
        if given is not None:
            overrides = _overrides(where, given, self._state)
            return Candidates.at(where, self.capacity + len(overrides), overrides)
        new = _Known(names, self.rows_version, Candidates.at(where, self.capacity))
        self._newest.appendleft(new)
        if not is_part:
            self._alike = self._alike + 1 if new.is_like(self._last) else 0
            self._last = new
        return new.found

    def usual(self, names: Sequence[str]) -> Candidates | None:
        """Return what *names* probably are, if they have not been looked up.

        Those are the nodes of the last calls, if all of them named the same ones, and as many.
        """
        last = self._last
        if last is None or self._alike < ALIKE or len(last.names) != len(names):
            return None
        if self._known(names) is not None:
            return None  # they have been looked up
        return last.found if last.version == self.rows_version else None

    def chosen(self, names: Sequence[str], kept: Mask) -> Sequence[str]:
        """Return the names of a call where *kept* is true; itself for all.

        Nobody has to look these up again, and the same choice as the last time is the same list.
        """
        key = kept.tobytes()
        if b"\0" not in key:
            return names
        known = self._known(names)
        if known is not None and known.choice is not None and known.choice[0] == key:
            return known.choice[1]
        chosen = list(compress(names, key))
        if known is not None:
            known.choice = key, chosen
            found = Candidates.at(known.found.where[kept], self.capacity)
            self._newest.appendleft(_Known(chosen, self.rows_version, found))
        return chosen

    def _known(self, names: Sequence[str]) -> "_Known | None":
        version = self.rows_version
        for known in self._newest:
            if known.names is names and known.version == version:
                return known
        return None


class _Index:
    """A copy of `row_of` whose names and numbers lie side by side in memory.

    The state's own lie among all that was decoded with them, a page or two apart: to look thousands
    of them up takes several times as long, most of it waiting for memory.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._version = -1
        self._copy: Mapping[str, int] = {}
        self._next = 0.0

    def rows(self) -> Mapping[str, int]:
        """Return the rows by name; a copy if there is one, or it is time to make one."""
        version, now = self._state.rows_version, time.monotonic()
        if version != self._version:
            if now < self._next:
                return self._state.row_of
            row_of, self._version = self._state.row_of, version
            names = msgspec.json.decode(msgspec.json.encode(list(row_of)), type=list[str])
            rows = np.fromiter(row_of.values(), np.intp, len(row_of)).tolist()
            self._copy = dict(zip(names, rows, strict=True))
            self._next = now + REST * (time.monotonic() - now)
        return self._copy


@dataclass(slots=True)
class _Known:
    """A list of names that was looked up, and the last choice of them."""

    names: Sequence[str]
    version: int
    found: Candidates
    choice: tuple[bytes, Sequence[str]] | None = None

    def is_like(self, other: "_Known | None") -> bool:
        """Whether both name the same nodes, each known and once."""
        return (
            other is not None
            and self.version == other.version
            and self.found.bitmap == other.found.bitmap
            and len(self.names) == len(other.names) == self.found.count
        )


def _where(names: Sequence[str], row_of: Mapping[str, int]) -> Rows:
    """Return the row of each name; unknown ones are rare."""
    try:
        return np.fromiter(map(row_of.__getitem__, names), np.intp, len(names))
    except KeyError:
        return np.fromiter((row_of.get(name, UNKNOWN) for name in names), np.intp, len(names))


def _overrides(rows: Rows, given: Sequence[GivenNode], state: ClusterState) -> Sequence[pb.NodeRow]:
    """Fill in the rows of new nodes, which nobody has; return the nodes that are new or differ."""
    different: list[pb.NodeRow] = []
    free = state.capacity
    for index, node in enumerate(given):
        if rows[index] < 0:
            rows[index], free = free, free + 1
        elif state.manifest(node.manifest.name) == node.manifest:
            continue
        different.append(pb.NodeRow(row=int(rows[index]), json=encode(node.manifest)))
    return different
