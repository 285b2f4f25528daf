"""Pods grouped by namespace and labels: what selectors ask about is decided once for each group."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import msgspec
import numpy as np

from moorage.models import LabelSelector, Pod, PodAffinityTerm
from moorage.rules import selects_namespace
from moorage.snapshot.columns.encoded import Encoded, EncodedColumns
from moorage.snapshot.columns.requirement import match_requirement
from moorage.snapshot.columns.shared import Shared
from moorage.snapshot.verdicts import Mask

FIRST_CAPACITY: Final = 64


class PodGroup(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the selectors of others see of a pod."""

    namespace: str
    labels: Mapping[str, str]
    terminating: bool


class PodGroups(Shared[PodGroup]):
    """The groups of the cluster in columns by label, which are made when first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._capacity = FIRST_CAPACITY
        self._columns: EncodedColumns[PodGroup] = EncodedColumns()

    def use_for(self, pod: Pod) -> int:
        """Return the number of the pod's group."""
        return self.use(PodGroup(pod.namespace, pod.labels, pod.is_terminating))

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

    def added(self, number: int, value: PodGroup) -> None:
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

    def _column(self, key: Hashable, read: Callable[[PodGroup], Hashable | None]) -> Encoded[Any]:
        column = self._columns.get(key, read, self.items(), len(self), self._capacity)
        return column.select(np.arange(self.bound))
