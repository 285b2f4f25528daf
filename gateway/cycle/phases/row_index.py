"""Finds the rows of a call's nodes in the cluster state."""

import time
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from gateway.calls.node_set import UNKNOWN, GivenNode, NodeRows, NodeSet, Rows
from gateway.cluster.state import ClusterState
from moorage.models import NodeManifest

PAUSE = 100
"""After the index was copied, it is not copied again for this many times as long as that took."""


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
