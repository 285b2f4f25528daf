"""Pods grouped by the pod affinity that they carry: which of their terms mean a given pod."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from moorage.models import Pod, PodAffinity, PodAffinityTerm
from moorage.rules import selects_pod
from moorage.snapshot.columns.shared import Shared

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
