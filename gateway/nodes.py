"""From the names of a call to rows and back."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

import numpy as np
import numpy.typing as npt

from gateway.calls import GivenNode
from gateway.cluster.state import ClusterState
from moorage.models import encode
from moorage.v1 import types_pb2 as pb

REMEMBERED = 12
"""Lists of names whose rows are remembered: a few for each scheduler amid a cycle."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The nodes of a call, for one cycle.

    Attributes:
        positions: Where in the call the nodes with a row stand, in the order of their rows.
        rows: Those rows.
        bitmap: The same as the protocol wants them.
        unknown: Where in the call the nodes without a row stand.
        overrides: Nodes that the call brought and that read differently here.
    """

    positions: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]
    bitmap: bytes
    unknown: npt.NDArray[np.intp]
    overrides: Sequence[pb.NodeRow] = field(default_factory=list)

    def among(self, positions: npt.NDArray[np.intp]) -> "Candidates":
        """Return those that stand at some positions; all nodes that the call brought stay known."""
        last = max(self.positions.max(initial=-1), positions.max(initial=-1))
        wanted = np.zeros(last + 1, np.bool_)
        wanted[positions] = True
        kept = wanted[self.positions]
        wanted[self.positions] = False
        return Candidates(
            positions=self.positions[kept],
            rows=self.rows[kept],
            bitmap=_bitmap(self.rows[kept]),
            unknown=np.flatnonzero(wanted),
            overrides=self.overrides,
        )


class NodeLookup:
    """Finds the rows of calls' nodes; knows the newest lists of names again by identity.

    The score half of a cycle and the prioritize call come with the very list of the filter half.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._newest: deque[tuple[Sequence[str], int, Candidates]] = deque(maxlen=REMEMBERED)

    def find(self, names: Sequence[str], given: Sequence[GivenNode] | None) -> Candidates:
        """Look up the nodes of a call; nodes that it brought along are known for this cycle."""
        version = self._state.rows_version
        if given is None:
            for known, known_version, found in self._newest:
                if known is names and known_version == version:
                    return found
        found = _candidates(names, given, self._state)
        if given is None:
            self._newest.append((names, version, found))
        return found

    def chosen(self, names: Sequence[str], kept: Mask) -> Sequence[str]:
        """Return the names of a call where *kept* is true; nobody has to look these up again."""
        chosen, version = list(compress(names, kept.tolist())), self._state.rows_version
        for known, known_version, found in self._newest:
            if known is names and known_version == version:
                self._newest.append((chosen, version, _chosen(found, kept)))
                break
        return chosen

    def without(self, names: Sequence[str], rejected: Collection[str]) -> Sequence[str]:
        """Return the names of a call without *rejected* and unknown ones; itself if that is all."""
        found, row_of = self.find(names, None), self._state.row_of
        out = np.zeros(self._state.capacity, np.bool_)
        out[[row_of[name] for name in rejected if name in row_of]] = True
        kept = np.ones(len(names), np.bool_)
        kept[found.unknown] = False
        kept[found.positions[out[found.rows]]] = False
        return names if kept.all() else self.chosen(names, kept)


def _chosen(found: Candidates, kept: Mask) -> Candidates:
    """Return the nodes that are kept, with their places in the shorter list."""
    place, known = np.cumsum(kept) - 1, kept[found.positions]
    return Candidates(
        positions=place[found.positions[known]],
        rows=found.rows[known],
        bitmap=_bitmap(found.rows[known]),
        unknown=place[found.unknown[kept[found.unknown]]],
    )


def _candidates(
    names: Sequence[str], given: Sequence[GivenNode] | None, state: ClusterState
) -> Candidates:
    rows = _rows(names, state.row_of)
    overrides = [] if given is None else _overrides(rows, given, state)
    known = np.flatnonzero(rows >= 0)
    positions = known[np.argsort(rows[known])]
    return Candidates(
        positions=positions,
        rows=rows[positions],
        bitmap=_bitmap(rows[positions]),
        unknown=np.flatnonzero(rows < 0),
        overrides=overrides,
    )


def _rows(names: Sequence[str], row_of: Mapping[str, int]) -> npt.NDArray[np.intp]:
    """Return the row of each name, -1 for unknown ones, which are rare."""
    try:
        return np.fromiter(map(row_of.__getitem__, names), np.intp, len(names))
    except KeyError:
        return np.fromiter((row_of.get(name, -1) for name in names), np.intp, len(names))


def _overrides(
    rows: npt.NDArray[np.intp], given: Sequence[GivenNode], state: ClusterState
) -> Sequence[pb.NodeRow]:
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


def _bitmap(rows: npt.NDArray[np.intp]) -> bytes:
    if not len(rows):
        return b""
    bits = np.zeros(int(rows[-1]) + 1, np.bool_)
    bits[rows] = True
    return np.packbits(bits, bitorder="little").tobytes()
