"""The nodes of a call: their names, the JSON of the names, and where they stand in the state.

kube-scheduler names nodes in an order of its own; replicas have them by row, and answer in
ascending order of rows. Between the edge and the replicas everything is by row.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from gateway.cluster.state import ClusterState
from moorage.models import NodeManifest
from moorage.snapshot.snapshot import MAX_NODES

PAUSE = 100
"""After the index was copied, it is not copied again for this many times as long as that took."""

UNKNOWN = -1
"""The row of a node that the cluster state does not have."""

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]
Rows = npt.NDArray[np.intp]
Value = TypeVar("Value", bound=np.generic)

_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenNode:
    """A node sent along with the call; `raw` is its JSON, a view into the request body."""

    manifest: NodeManifest
    raw: msgspec.Raw


class NodeRows(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The rows of a call's nodes in the cluster state, as of one version of the rows.

    Replicas answer in ascending order of rows.

    Attributes:
        by_position: The row of each node, in the order of the call; UNKNOWN if it has none.
        rows: These rows, in ascending order.
        mask: Which rows these are. The last item stands for UNKNOWN and is false.
        bitmap: The mask as replicas get it.
        count: How many rows these are.
        given: Rows and manifests of nodes that the call brought and that differ from the state's.
    """

    by_position: Rows
    rows: Rows
    mask: Mask
    bitmap: bytes
    count: int
    given: Sequence[tuple[int, NodeManifest]] = ()

    @classmethod
    def at(
        cls, by_position: Rows, capacity: int, given: Sequence[tuple[int, NodeManifest]] = ()
    ) -> "NodeRows":
        """Make them of the row of each node; all rows are below *capacity*."""
        mask = np.zeros(capacity + 1, np.bool_)
        mask[by_position] = True
        mask[UNKNOWN] = False
        bitmap = np.packbits(mask, bitorder="little").tobytes().rstrip(b"\0")
        rows = np.flatnonzero(mask)
        return cls(
            by_position=by_position,
            rows=rows,
            mask=mask,
            bitmap=bitmap,
            count=len(rows),
            given=given,
        )

    @property
    def positions(self) -> Positions:
        """The positions in the call of the nodes that have a row, in ascending order of rows."""
        position_of = np.zeros(len(self.mask), np.intp)
        position_of[self.by_position] = np.arange(len(self.by_position))
        return position_of[self.mask]

    @property
    def unknown(self) -> int:
        """How many nodes of the call have no row."""
        if self.count == len(self.by_position):
            return 0
        return int(np.count_nonzero(self.by_position == UNKNOWN))

    @property
    def distinct(self) -> bool:
        """Whether no node with a row is there twice."""
        return self.count + self.unknown == len(self.by_position)

    def subset(self, positions: Positions) -> "NodeRows":
        """Return the nodes at some positions; the others become UNKNOWN."""
        by_position = np.full(len(self.by_position), UNKNOWN)
        by_position[positions] = self.by_position[positions]
        return NodeRows.at(by_position, len(self.mask) - 1, self.given)

    def to_call_order(self, values: npt.NDArray[Value], unknown: int) -> npt.NDArray[Value]:
        """Return the values of rows in the order of the call; *unknown* for nodes without a row.

        A name that the call has twice gets its value twice.
        """
        table = np.empty(len(self.mask), values.dtype)
        table[UNKNOWN] = unknown
        table[self.mask] = values
        return table[self.by_position]


class NodeSet:
    """The nodes of a call, in its order.

    What is worked out about them is kept: the JSON of the names, the rows, the last subset.

    Attributes:
        names: The names.
        given: The nodes themselves, aligned with the names, if the call brought them.
        is_named: Whether the call named the nodes; else it brought only the nodes themselves.
        rows: The rows by the version of the state's rows; `RowIndex.find` sets it.
    """

    __slots__ = ("_encoded", "_subset", "given", "is_named", "names", "rows")

    def __init__(
        self,
        names: Sequence[str],
        *,
        encoded: bytes = b"",
        given: Sequence[GivenNode] | None = None,
        is_named: bool = True,
    ) -> None:
        """Take *names*, and the JSON array of exactly these names if there is one."""
        self.names = names
        self.given = given
        self.is_named = is_named
        self.rows: tuple[int, NodeRows] | None = None
        self._encoded = encoded
        self._subset: tuple[bytes, NodeSet] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def encoded(self) -> bytes:
        """The names as a JSON array."""
        if not self._encoded:
            self._encoded = _encode(self.names)
        return self._encoded

    def same_nodes(self, other: "NodeSet") -> bool:
        """Whether both have the same nodes, in any order."""
        if self is other or self.names == other.names:
            return True
        return len(self) == len(other) and set(self.names) == set(other.names)

    def restricted(self, kept: Mask) -> "NodeSet":
        """Return the nodes where *kept* is true; the set itself if that is all of them."""
        key = kept.tobytes()
        if b"\0" not in key:
            return self
        if self._subset is None or self._subset[0] != key:
            self._subset = key, self._restricted(kept, key)
        return self._subset[1]

    def _restricted(self, kept: Mask, key: bytes) -> "NodeSet":
        given = None if self.given is None else list(compress(self.given, key))
        subset = NodeSet(list(compress(self.names, key)), given=given, is_named=self.is_named)
        if self.rows is not None and self.given is None:
            version, rows = self.rows
            subset.rows = version, NodeRows.at(rows.by_position[kept], len(rows.mask) - 1)
        return subset


def rows_of(bitmap: bytes) -> Rows:
    """Return the rows of a bitmap, in ascending order.

    Raises:
        ValueError: It is too long.
    """
    if len(bitmap) > MAX_NODES:
        raise ValueError(f"a bitmap of {len(bitmap)} bytes")
    return np.flatnonzero(np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little"))


def bitmap_of(rows: Positions) -> bytes:
    """Return rows as a bitmap."""
    mask = np.zeros(int(rows.max(initial=-1)) + 1, np.bool_)
    mask[rows] = True
    return np.packbits(mask, bitorder="little").tobytes()


def index_of(bitmap: bytes, row: int) -> int | None:
    """Return which of the rows of a bitmap *row* is; None if it is none."""
    rows = int.from_bytes(bitmap, "little")
    if not rows >> row & 1:
        return None
    return (rows & ((1 << row) - 1)).bit_count()


class RowIndex:
    """Rows by node name.

    The index is a copy of the state's, made so that names and numbers lie side by side in memory.
    The state's own keys lie among everything that was decoded with them, a page or two apart:
    looking thousands of them up takes several times as long.
    """

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._version = -1
        self._copy: Mapping[str, int] = {}
        self._next_copy = 0.0

    def find(self, nodes: NodeSet) -> NodeRows:
        """Return the rows of the nodes now; nodes that the call brought are known for it alone."""
        version = self.state.rows.version
        if nodes.rows is not None and nodes.rows[0] == version and nodes.given is None:
            return nodes.rows[1]
        by_position = _rows_of(nodes.names, self._rows())
        if nodes.given is not None:
            given = _different(by_position, nodes.given, self.state)
            found = NodeRows.at(by_position, self.state.rows.capacity + len(given), given)
        else:
            found = NodeRows.at(by_position, self.state.rows.capacity)
        nodes.rows = version, found
        return found

    def _rows(self) -> Mapping[str, int]:
        version, now = self.state.rows.version, time.monotonic()
        if version != self._version:
            if now < self._next_copy:
                return self.state.rows.of
            row_of, self._version = self.state.rows.of, version
            names = msgspec.json.decode(msgspec.json.encode(list(row_of)), type=list[str])
            rows = np.fromiter(row_of.values(), np.intp, len(row_of)).tolist()
            self._copy = dict(zip(names, rows, strict=True))
            self._next_copy = now + PAUSE * (time.monotonic() - now)
        return self._copy


def _rows_of(names: Sequence[str], row_of: Mapping[str, int]) -> Rows:
    """Return the row of each name; unknown names are rare."""
    try:
        return np.fromiter(map(row_of.__getitem__, names), np.intp, len(names))
    except KeyError:
        return np.fromiter((row_of.get(name, UNKNOWN) for name in names), np.intp, len(names))


def _different(
    rows: Rows, given: Sequence[GivenNode], state: ClusterState
) -> list[tuple[int, NodeManifest]]:
    """Give new nodes rows that nobody has; return the nodes that are new or differ."""
    different: list[tuple[int, NodeManifest]] = []
    free = state.rows.capacity
    for index, node in enumerate(given):
        if rows[index] < 0:
            rows[index], free = free, free + 1
        elif (known := state.rows.entries.get(node.manifest.name)) and (
            known.manifest == node.manifest
        ):
            continue
        different.append((int(rows[index]), node.manifest))
    return different
