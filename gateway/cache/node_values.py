"""Numbers that are known of rows, until the rows change."""

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gateway.cluster.state import ClusterState
from gateway.cycle.node_set import Candidates, Mask, Rows
from gateway.cycle.request import Subject

Value = TypeVar("Value", bound=np.generic)

NEVER = -1

AHEAD = 32
"""Nodes that are asked about before their turn, at most."""


class RowValues(Generic[Value]):
    """Some numbers for each row that was asked about, and as of which generation they are right.

    Attributes:
        ahead: How many nodes are asked about before their turn, at most.
    """

    def __init__(
        self, state: ClusterState, each: int, kind: type[Value], *, compares_manifests: bool = False
    ) -> None:
        """Know *each* numbers of a row, which may depend on the manifests of all nodes."""
        self.ahead = AHEAD
        self._state = state
        self._values: npt.NDArray[Value] = np.zeros((each, 0), kind)
        self._as_of = np.zeros(0, np.int64)
        self._compares_manifests = compares_manifests

    def stale(self, found: Candidates) -> Rows:
        """Return those rows of nodes that are not known, or have changed since."""
        stale = self._is_stale()
        present = found.present[: len(stale)]
        return np.flatnonzero(stale[: len(present)] & present)

    def changed_besides(self, found: Candidates) -> Rows:
        """Return rows of other nodes that were known and have changed since, at most `ahead`."""
        changed = self._is_stale() & (self._as_of > NEVER)
        present = found.present[: len(changed)]
        changed[: len(present)] &= ~present
        rows: list[int] = []
        for row in np.flatnonzero(changed).tolist():
            if len(rows) == self.ahead:
                break
            if self._state.name_at(row) is None:
                self._as_of[row] = NEVER  # so that rows of nodes that are gone are looked at once
            else:
                rows.append(row)
        return np.array(rows, np.intp)

    def put(self, rows: Rows, values: npt.NDArray[Value], generation: int) -> None:
        """Take over what is right as of a generation: a line for each number."""
        self._known_as_of()[rows] = generation
        self._values[:, rows] = values

    def at(self, rows: Rows) -> npt.NDArray[Value]:
        """Return what is known of rows, none of which is stale: a line for each number."""
        return self._values[:, rows]

    def _is_stale(self) -> Mask:
        as_of = self._known_as_of()
        since = self._state.touched.at[: len(as_of)]
        if self._compares_manifests:
            since = np.maximum(since, self._state.manifests_changed)
        stale: Mask = since > as_of
        return stale

    def _known_as_of(self) -> npt.NDArray[np.int64]:
        missing = self._state.capacity - len(self._as_of)
        if missing > 0:
            self._as_of = np.concatenate([self._as_of, np.full(missing, NEVER)])
            more = np.zeros((len(self._values), missing), self._values.dtype)
            self._values = np.concatenate([self._values, more], axis=1)
        return self._as_of


def to_ask(
    subject: Subject, values: RowValues[Value], found: Candidates, state: ClusterState
) -> Subject | None:
    """Return what replicas have to be asked about the subject's nodes, *found* in these rows.

    None if all are known; the subject itself if none is. Others that were known and have changed
    are asked about too, a few at a time: kube-scheduler goes through the nodes in turn, so their
    turn will come, and a call costs nearly the same for one node or ten.
    """
    stale = values.stale(found)
    if not len(stale):
        return None
    if len(stale) == found.count:
        return subject
    asked = [*stale.tolist(), *values.changed_besides(found).tolist()]
    names = [name for row in asked if (name := state.name_at(row)) is not None]
    return replace(subject, names=names)
