"""Where pods are, by what they are: one element of a few arrays for each pod.

Pods are grouped by namespace and labels, so that what selectors ask about is decided once for each
group; and by the pod affinity that they carry, for which of their terms mean a given pod.


Counting goes through all pods, but in numpy: some hundred microseconds for 150,000 of them, and
twelve bytes for each.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from moorage.models import LabelSelector, Pod, PodAffinity, PodAffinityTerm
from moorage.rules import selects_namespace, selects_pod
from moorage.snapshot.columns.encoded import Encoded, EncodedColumns, Shared, match_requirement
from moorage.snapshot.columns.resources import Amounts
from moorage.snapshot.verdicts import Mask

FIRST_GROUPS: Final = 64


class SelectablePod(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the selectors of others see of a pod."""

    namespace: str
    labels: Mapping[str, str]
    terminating: bool


class PodGroups(Shared[SelectablePod]):
    """The groups of the cluster in columns by label, which are made when first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._capacity = FIRST_GROUPS
        self._columns: EncodedColumns[SelectablePod] = EncodedColumns()

    def use_for(self, pod: Pod) -> int:
        """Return the number of the pod's group."""
        return self.use(SelectablePod(pod.namespace, pod.labels, pod.is_terminating))

    def selected(self, term: PodAffinityTerm, own_namespace: str) -> Mask:
        """Return for each number whether a term of a pod in *own_namespace* means the group.

        Raises:
            ValueError: The term cannot be decided, see `moorage.rules.selects_pod`.
        """
        selects_namespace(term, own_namespace, own_namespace)  # raises even if there are no pods
        namespaces = self._column("namespace", lambda group: group.namespace)
        chosen = namespaces.where(
            lambda name: name is not None and selects_namespace(term, own_namespace, name)
        )
        return chosen & self._labelled(term.label_selector)

    def terminating(self) -> Mask:
        """Return for each number whether the pods of the group are being deleted."""
        return self._column("terminating", lambda group: group.terminating).where(bool)

    def added(self, number: int, value: SelectablePod) -> None:
        """Put a new group into the columns; those of a group without pods are not looked at."""
        if number >= self._capacity:
            self._capacity *= 2
            self._columns.resize(self._capacity)
        self._columns.set(number, value)

    def _labelled(self, selector: LabelSelector | None) -> Mask:
        mask = np.full(self.bound, selector is not None)
        if selector is None:
            return mask
        for key, value in selector.match_labels.items():
            mask &= self._label(key).isin((value,))
        for requirement in selector.match_expressions:
            mask &= match_requirement(self._label(requirement.key), requirement)
        return mask

    def _label(self, key: str) -> Encoded[str]:
        return self._column(("label", key), lambda group: group.labels.get(key))

    def _column(
        self, key: Hashable, read: Callable[[SelectablePod], Hashable | None]
    ) -> Encoded[Any]:
        column = self._columns.get(key, read, self.items(), len(self), self._capacity)
        return column.select(np.arange(self.bound))


Anchor = tuple[str, str]

ANYTHING: Final[Anchor] = ("", "")
"""Where carriers stand whose terms ask for no particular label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedTerm:
    """What a term of a pod's affinity or anti-affinity means for the pods that it selects.

    Attributes:
        topology_key: The label of nodes within whose values pods are near to each other.
        anti: It keeps the selected pods away.
        weight: How strong a wish it is, 1..100; None if it is required.
    """

    topology_key: str
    anti: bool = False
    weight: int | None = None


class Carrier(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What pods with terms have in common."""

    namespace: str
    affinity: PodAffinity | None
    anti_affinity: PodAffinity | None

    def terms(self) -> Iterator[tuple[CarriedTerm, PodAffinityTerm]]:
        """Yield all terms, with what they mean for the pods that they select."""
        for anti, side in ((False, self.affinity), (True, self.anti_affinity)):
            for term in side.required if side else ():
                yield CarriedTerm(topology_key=term.topology_key, anti=anti), term
            for wish in side.preferred if side else ():
                term, weight = wish.pod_affinity_term, wish.weight
                yield CarriedTerm(topology_key=term.topology_key, anti=anti, weight=weight), term


class Carriers(Shared[Carrier]):
    """All carriers, found by one label that each of their terms asks for."""

    def __init__(self) -> None:
        super().__init__()
        self._standing_at: dict[Anchor, set[int]] = {}

    def use_for(self, pod: Pod) -> int:
        """Return the number of the pod's carrier, or 0 if it has no terms."""
        affinity = pod.spec.affinity
        if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
            return 0
        return self.use(Carrier(pod.namespace, affinity.pod_affinity, affinity.pod_anti_affinity))

    def selecting(self, pod: Pod) -> Mapping[CarriedTerm, Counter[int]]:
        """Return the terms that mean *pod*, each with how often which carriers have it.

        A term of another pod that cannot be evaluated selects nothing: one pod must not stop all.
        """
        found: dict[CarriedTerm, Counter[int]] = {}
        for number in self._candidates(pod):
            carrier = self.value(number)
            for carried, term in carrier.terms():
                if _selects(term, carrier.namespace, pod):
                    found.setdefault(carried, Counter())[number] += 1
        return found

    def added(self, number: int, value: Carrier) -> None:
        """Let a new carrier be found."""
        for anchor in _anchors(value):
            self._standing_at.setdefault(anchor, set()).add(number)

    def removed(self, number: int, value: Carrier) -> None:
        """Let a carrier no longer be found."""
        for anchor in _anchors(value):
            standing = self._standing_at[anchor]
            standing.discard(number)
            if not standing:
                del self._standing_at[anchor]

    def _candidates(self, pod: Pod) -> set[int]:
        anchors = (ANYTHING, *pod.labels.items())
        return {number for anchor in anchors for number in self._standing_at.get(anchor, ())}


def _selects(term: PodAffinityTerm, own_namespace: str, pod: Pod) -> bool:
    try:
        return selects_pod(term, own_namespace, pod)
    except ValueError:
        return False


def _anchors(carrier: Carrier) -> set[Anchor]:
    return {anchor for _, term in carrier.terms() for anchor in _anchors_of(term)}


def _anchors_of(term: PodAffinityTerm) -> Iterable[Anchor]:
    """Return labels of which a pod must have one to be selected."""
    selector = term.label_selector
    if selector is None:
        return ()
    for label in selector.match_labels.items():
        return (label,)
    for requirement in selector.match_expressions:
        if requirement.operator == "In":
            return ((requirement.key, value) for value in requirement.values)
    return (ANYTHING,)


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
