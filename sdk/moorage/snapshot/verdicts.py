"""What filter plugins return: a rejection for one node, verdicts for many."""

from dataclasses import dataclass
from typing import Final, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
"""One truth value for each node of a selection."""

CuredBy = Literal["capacity", "nothing"]
"""What would cure a rejection: a new node, which has its own room, labels and state, or nothing."""

CURES: Final[tuple[CuredBy, ...]] = get_args(CuredBy)


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a node cannot run a pod.

    Equal texts are counted together and shown to users, so keep them constant: no names, numbers or
    times. Set `unresolvable` if removing other pods from the node would not help: then
    kube-scheduler does not try to preempt them. Set `cured_by="capacity"` if a new node would not
    be rejected: then `moorage capacity` may ask an autoscaler for one. None stands for `cured_by`
    of the plugin.
    """

    reason: str
    unresolvable: bool = True
    cured_by: CuredBy | None = None


class Verdicts:
    """One verdict for each node of a selection; all pass until rejected.

    Attributes:
        count: The number of nodes.
        codes: For each node 0 if it passes, i if `reasons[i - 1]` rejects it.
        reasons: The rejections in use.
    """

    __slots__ = ("_codes", "_numbers", "count", "reasons")

    def __init__(self, count: int) -> None:
        """Let all of *count* nodes pass."""
        self.count = count
        self._codes: npt.NDArray[np.uint16] | None = None  # most filters reject nobody
        self.reasons: list[Rejection] = []
        self._numbers: dict[Rejection, int] = {}

    @property
    def codes(self) -> npt.NDArray[np.uint16]:
        """For each node 0 if it passes, i if `reasons[i - 1]` rejects it; may be changed."""
        if self._codes is None:
            self._codes = np.zeros(self.count, np.uint16)
        return self._codes

    @codes.setter
    def codes(self, codes: npt.NDArray[np.uint16]) -> None:
        self._codes = codes

    @property
    def untouched(self) -> bool:
        """Whether all nodes pass because nobody has rejected any or looked at `codes`."""
        return self._codes is None

    def reject(self, mask: npt.ArrayLike, rejection: Rejection | str) -> Self:
        """Reject the nodes where *mask* is true that still pass; return self, to chain calls."""
        if isinstance(rejection, str):
            rejection = Rejection(rejection)
        chosen = np.asarray(mask, np.bool_)
        if self._codes is not None:
            chosen = chosen & (self._codes == 0)
        elif chosen.shape != (self.count,):
            chosen = np.broadcast_to(chosen, self.count)
        if np.count_nonzero(chosen):
            self.codes[chosen] = self._code(rejection)
        return self

    def reject_at(self, index: int | npt.NDArray[np.intp], rejection: Rejection) -> None:
        """Reject the node at position *index* of the selection, or those at several positions."""
        self.codes[index] = self._code(rejection)

    def _code(self, rejection: Rejection) -> int:
        number = self._numbers.get(rejection)
        if number is None:
            if rejection.cured_by is not None and rejection.cured_by not in CURES:
                raise ValueError(f"cured_by is one of {CURES} or None, not {rejection.cured_by!r}")
            self.reasons.append(rejection)
            number = self._numbers[rejection] = len(self.reasons)
        return number

    @property
    def passed(self) -> Mask:
        """True for each node that passes."""
        passed: Mask = self.codes == 0
        return passed
