"""Numbers that are cached by row, until what they depend on changes."""

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from gateway.calls.node_set import Mask, NodeRows, Rows
from gateway.cluster.state import ClusterState
from moorage.plugin.scope import Scope

Value = TypeVar("Value", bound=np.generic)

NEVER = -1

PREFETCH_LIMIT = 32
"""Stale rows of other nodes that are fetched along, at most."""


class NodeValues(Generic[Value]):
    """Some numbers for each row, and the generation of the state that each row's are valid for.

    Attributes:
        prefetch_limit: How many stale rows of other nodes are fetched along.
    """

    def __init__(self, state: ClusterState, each: int, kind: type[Value], scope: Scope) -> None:
        """Cache *each* numbers of a row; they depend on what *scope* names."""
        # If they depend on the whole cluster, all rows become stale at once.
        self.prefetch_limit = PREFETCH_LIMIT if scope < Scope.CLUSTER else 0
        self._state = state
        self._scope = scope
        self._values: npt.NDArray[Value] = np.zeros((each, 0), kind)
        self._valid_at = np.zeros(0, np.int64)

    def stale(self, nodes: NodeRows) -> Rows:
        """Return the rows of nodes that are not cached, or have become stale."""
        stale = self._is_stale()
        mask = nodes.mask[: len(stale)]
        return np.flatnonzero(stale[: len(mask)] & mask)

    def stale_elsewhere(self, nodes: NodeRows) -> Rows:
        """Return cached rows of other nodes that have become stale, at most `prefetch_limit`."""
        stale = self._is_stale() & (self._valid_at > NEVER)
        mask = nodes.mask[: len(stale)]
        stale[: len(mask)] &= ~mask
        rows: list[int] = []
        for row in np.flatnonzero(stale).tolist():
            if len(rows) == self.prefetch_limit:
                break
            if self._state.rows.name_at(row) is None:
                self._valid_at[row] = NEVER  # looks at a row whose node is gone only once
            else:
                rows.append(row)
        return np.array(rows, np.intp)

    def put(self, rows: Rows, values: npt.NDArray[Value], generation: int) -> None:
        """Cache values that are valid for a generation: a line for each number."""
        self._sized_valid_at()[rows] = generation
        self._values[:, rows] = values

    def at(self, rows: Rows) -> npt.NDArray[Value]:
        """Return the values of rows, none of which is stale: a line for each number."""
        return self._values[:, rows]

    def _is_stale(self) -> Mask:
        valid_at, state = self._sized_valid_at(), self._state
        if self._scope >= Scope.CLUSTER:
            return state.generation > valid_at
        changed = state.rows.touched[: len(valid_at)]
        if self._scope >= Scope.MANIFESTS:
            changed = np.maximum(changed, state.manifests_changed)
        stale: Mask = changed > valid_at
        return stale

    def _sized_valid_at(self) -> npt.NDArray[np.int64]:
        missing = self._state.rows.capacity - len(self._valid_at)
        if missing > 0:
            self._valid_at = np.concatenate([self._valid_at, np.full(missing, NEVER)])
            more = np.zeros((len(self._values), missing), self._values.dtype)
            self._values = np.concatenate([self._values, more], axis=1)
        return self._valid_at
