"""Where pods are, by what they are: one element of a few arrays for each pod.

Counting goes through all pods, but in numpy: some hundred microseconds for 150,000 of them, and
twelve bytes for each.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from moorage.models import Pod, PodAffinityTerm
from moorage.snapshot.columns.labels import PodGroups
from moorage.snapshot.columns.resources import Amounts
from moorage.snapshot.columns.terms import CarriedTerm, Carriers

FIRST_CAPACITY = 256


class PodIndex:
    """The rows of pods, by uid, by namespace and labels, and by the affinity that they carry."""

    def __init__(self) -> None:
        self._groups = PodGroups()
        self._carriers = Carriers()
        self._slot_of: dict[str, int] = {}
        self._free: list[int] = []
        # By slot: the pod's row, the number of its group and that of its carrier; 0 is none.
        self._row = np.zeros(FIRST_CAPACITY, np.int32)
        self._group = np.zeros(FIRST_CAPACITY, np.int32)
        self._carrier = np.zeros(FIRST_CAPACITY, np.int32)

    def __len__(self) -> int:
        return len(self._slot_of)

    def row_of(self, uid: str) -> int | None:
        """Return the row of the pod with *uid*."""
        slot = self._slot_of.get(uid)
        return None if slot is None else int(self._row[slot])

    def add(self, row: int, pod: Pod) -> None:
        """Put a pod that is not there yet into *row*."""
        slot = self._free.pop() if self._free else len(self._slot_of)
        if slot == len(self._row):
            self._row, self._group, self._carrier = (
                np.concatenate([column, np.zeros_like(column)])
                for column in (self._row, self._group, self._carrier)
            )
        self._row[slot] = row
        self._group[slot] = self._groups.use_for(pod)
        self._carrier[slot] = self._carriers.use_for(pod)
        self._slot_of[pod.uid] = slot

    def remove(self, uid: str) -> int | None:
        """Take a pod out; return the row where it was, if it was in one."""
        slot = self._slot_of.pop(uid, None)
        if slot is None:
            return None
        self._groups.release(int(self._group[slot]))
        self._carriers.release(int(self._carrier[slot]))
        self._group[slot] = self._carrier[slot] = 0
        self._free.append(slot)
        return int(self._row[slot])

    def count(
        self,
        terms: Iterable[PodAffinityTerm],
        own_namespace: str,
        capacity: int,
        *,
        terminating: bool,
    ) -> Amounts:
        """Return for each row how many pods all *terms* of a pod in *own_namespace* mean.

        Raises:
            ValueError: A term cannot be decided, see `moorage.rules.selects_pod`.
        """
        wanted = np.ones(self._groups.bound, np.bool_)
        wanted[0] = False
        if not terminating:
            wanted &= ~self._groups.terminating()
        for term in terms:
            wanted &= self._groups.selected(term, own_namespace)
        if not wanted.any():
            return np.zeros(capacity, np.int64)
        used = len(self._slot_of) + len(self._free)
        return np.bincount(self._row[:used][wanted[self._group[:used]]], minlength=capacity)

    def carrying(self, pod: Pod, capacity: int) -> Mapping[CarriedTerm, Amounts]:
        """Return the terms that mean *pod*, each with how many the pods of each row carry."""
        return {
            term: self._times(times, capacity)
            for term, times in self._carriers.selecting(pod).items()
        }

    def _times(self, times: Mapping[int, int], capacity: int) -> Amounts:
        table: npt.NDArray[np.int64] = np.zeros(self._carriers.bound, np.int64)
        table[list(times)] = list(times.values())
        used = len(self._slot_of) + len(self._free)
        carried = table[self._carrier[:used]]
        slots = np.flatnonzero(carried)
        rows, weights = self._row[slots], carried[slots]
        return np.bincount(rows, weights, minlength=capacity).astype(np.int64)
