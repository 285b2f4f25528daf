"""What a profile or its shadow decided in a cycle, in a form that can be compared."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gateway.decisions.cycle import NodeScores
from gateway.decisions.verdicts import NodeVerdicts, Reason

NEAR = 1e-3
"""Totals that differ by less are equal: they are sums in single precision, 0..100."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Verdicts and scores.

    Attributes:
        rows: The rows of all nodes of the cycle, ascending.
        verdicts: Those on them; None if no plugin filters.
        scores: Those of the feasible ones; None if no plugin has an opinion, or nothing is to be
            ranked.
    """

    rows: npt.NDArray[np.intp]
    verdicts: NodeVerdicts | None
    scores: NodeScores | None = None

    @cached_property
    def codes(self) -> npt.NDArray[np.uint16]:
        """The verdict on each row: 0, or the number of the reason."""
        if self.verdicts is None:
            return np.zeros(len(self.rows), np.uint16)
        return self.verdicts.codes

    @cached_property
    def feasible(self) -> npt.NDArray[np.bool_]:
        """Which of the rows can run the pod."""
        feasible: npt.NDArray[np.bool_] = self.codes == 0
        return feasible

    @cached_property
    def totals(self) -> npt.NDArray[np.float64]:
        """The total of each row, 0 without an opinion; NaN of those that cannot run the pod."""
        totals = np.where(self.feasible, 0.0, np.nan)
        if self.scores is not None:
            totals[self.scored] = self.scores.totals
        return totals

    @cached_property
    def scored(self) -> npt.NDArray[np.intp]:
        """The positions among the rows that have scores, in ascending order."""
        if self.scores is None:
            return np.zeros(0, np.intp)
        return np.searchsorted(self.rows, rows_of(self.scores.bitmap))

    @cached_property
    def best(self) -> npt.NDArray[np.bool_]:
        """Which of the rows are the best; none if none can run the pod."""
        if not self.feasible.any():
            return self.feasible
        totals = self.totals
        found: npt.NDArray[np.bool_] = totals >= np.nanmax(totals) - NEAR
        return found

    def reason(self, position: int) -> Reason | None:
        """Return why the node at a position is rejected, None if it is not."""
        code = int(self.codes[position])
        return self.verdicts.reasons[code - 1] if code and self.verdicts is not None else None

    def opinions(self, position: int) -> dict[str, tuple[int, float]]:
        """Return weight and normalised score of the node at a position, by plugin."""
        index = int(np.searchsorted(self.scored, position))
        if self.scores is None or index >= len(self.scored) or self.scored[index] != position:
            return {}
        return {p.plugin: (p.weight, float(p.normalized[index])) for p in self.scores.plugins}


def rows_of(bitmap: bytes) -> npt.NDArray[np.intp]:
    """Return the rows of a bitmap, in ascending order."""
    return np.flatnonzero(np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little"))
