"""From the names of a call to rows and back."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gateway.calls import GivenNode
from gateway.cluster.state import ClusterState
from moorage.models import encode
from moorage.v1 import types_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The nodes of a call, for one cycle.

    Attributes:
        positions: Where in the call the nodes with a row stand, in the order of their rows.
        bitmap: Their rows, as the protocol wants them.
        unknown: Where in the call the nodes without a row stand.
        overrides: Nodes that the call brought and that read differently here.
    """

    positions: npt.NDArray[np.intp]
    bitmap: bytes
    unknown: npt.NDArray[np.intp]
    overrides: Sequence[pb.NodeRow] = field(default_factory=list)


def candidates(
    names: Sequence[str], given: Sequence[GivenNode] | None, state: ClusterState
) -> Candidates:
    """Look up the nodes of a call; nodes that it brought along are known for this cycle."""
    rows = np.fromiter((state.row_of.get(name, -1) for name in names), np.intp, len(names))
    overrides: list[pb.NodeRow] = []
    if given is not None:
        rows = rows.copy()
        overrides = list(_overrides(rows, given, state))
    known = np.flatnonzero(rows >= 0)
    positions = known[np.argsort(rows[known])]
    return Candidates(
        positions=positions,
        bitmap=_bitmap(rows[positions]),
        unknown=np.flatnonzero(rows < 0),
        overrides=overrides,
    )


def _overrides(
    rows: npt.NDArray[np.intp], given: Sequence[GivenNode], state: ClusterState
) -> Sequence[pb.NodeRow]:
    """Give each node that is new or different its row; new ones get rows that nobody has."""
    different = []
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
