"""What came of a cycle, or would have: live, of a shadow, recorded, replayed or simulated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gateway.cycle.nodes import Mask, Rows, rows_of
from gateway.cycle.rules import claimed
from gateway.cycle.scores import Scores
from gateway.cycle.verdicts import Reason, Verdicts

EQUAL = 1e-4
"""Totals, of 0..100, that differ by less are the same: they have single precision."""

NameAt = Callable[[int], str | None]
"""Returns the name of the node in a row."""


class Choice(NamedTuple):
    """Whether Moorage decides without kube-scheduler's scores, and for which row.

    The row is None if no node is feasible, or if kube-scheduler has a say.
    """

    is_alone: bool
    row: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """Verdicts and scores.

    Attributes:
        rows: The rows of all nodes of the cycle, ascending.
        verdicts: The verdicts on them; None if no plugin filters.
        scores: The scores of the feasible ones; None if no plugin has an opinion, or nothing is to
            be ranked.
        claimants: The plugins that want the pod to claim its node.
        failures: Plugins that were left out, as PLUGIN: why.
        error: Why the cycle failed; empty if it did not.
    """

    rows: Rows
    verdicts: Verdicts | None = None
    scores: Scores | None = None
    claimants: Sequence[str] = ()
    failures: Sequence[str] = ()
    error: str = ""

    @cached_property
    def codes(self) -> npt.NDArray[np.uint16]:
        """The verdict on each row: 0, or the number of the reason."""
        if self.verdicts is None:
            return np.zeros(len(self.rows), np.uint16)
        return self.verdicts.codes

    @cached_property
    def feasible(self) -> Mask:
        """Which of the rows can run the pod."""
        feasible: Mask = self.codes == 0
        return feasible

    @cached_property
    def scored(self) -> Mask:
        """Which of the rows have scores."""
        if self.scores is None:
            return np.zeros(len(self.rows), np.bool_)
        return np.isin(self.rows, rows_of(self.scores.bitmap), assume_unique=True)

    @cached_property
    def totals(self) -> npt.NDArray[np.float64]:
        """The total of each row, 0 without an opinion; NaN of those that cannot run the pod."""
        totals = np.where(self.feasible, 0.0, np.nan)
        if self.scores is not None:
            totals[self.scored] = self.scores.totals
        return totals

    @cached_property
    def best(self) -> Mask:
        """Which of the rows are the best; none if none can run the pod."""
        if not self.feasible.any():
            return self.feasible
        found: Mask = self.totals >= np.nanmax(self.totals) - EQUAL
        return found

    def position_of(self, row: int | None) -> int | None:
        """Return which of the rows *row* is; None if it is none."""
        found = np.flatnonzero(self.rows == row)
        return int(found[0]) if len(found) else None

    def reason(self, position: int) -> Reason | None:
        """Return why the node at a position is rejected, None if it is not."""
        code = int(self.codes[position])
        return self.verdicts.reasons[code - 1] if code and self.verdicts is not None else None

    def opinions(self, position: int) -> dict[str, tuple[int, float]]:
        """Return weight and normalised score of the node at a position, by plugin, if known."""
        if self.scores is None or not self.scored[position]:
            return {}
        index = int(np.count_nonzero(self.scored[:position]))
        return {
            each.plugin: (each.weight, float(each.normalized[index]))
            for each in self.scores.plugins
            if len(each.normalized)
        }

    def parts(self, position: int) -> dict[str, float]:
        """Return what each plugin adds to the total of the node at a position."""
        opinions = self.opinions(position)
        weights = sum(weight for weight, _ in opinions.values())
        return {name: weight * score / weights for name, (weight, score) in opinions.items()}

    def choice(self, uid: str, name_at: NameAt) -> Choice:
        """Return for which node Moorage decides for the pod of this uid, if it decides alone."""
        rows = self.rows[self.feasible]
        if len(rows) < 2:
            return Choice(True, int(rows[0]) if len(rows) else None)
        if not self.claimants:
            return Choice(False, None)
        if self.scores is None:
            return Choice(True, one_of(rows, uid, name_at))
        rows, totals = self.rows[self.scored], self.scores.totals
        return Choice(True, int(rows[claimed(uid, _names(rows, name_at), totals)]))


def one_of(rows: Rows, uid: str, name_at: NameAt) -> int | None:
    """Return one of equally good nodes; None if there is none."""
    return int(rows[claimed(uid, _names(rows, name_at))]) if len(rows) else None


def _names(rows: Rows, name_at: NameAt) -> list[str]:
    return [name_at(row) or "" for row in rows.tolist()]
