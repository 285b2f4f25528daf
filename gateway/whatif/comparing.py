"""Two outcomes of one cycle, compared on the same nodes: verdicts, scores and the best node."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gateway.cycle.answers import PhaseScores, PhaseVerdicts
from gateway.cycle.nodes import Mask, Rows, rows_of
from moorage.execution import PluginRejection

EQUAL = 1e-4
"""Totals, of 0..100, that differ by less are the same: they have single precision."""

NameAt = Callable[[int], str | None]
"""Returns the name of the node in a row."""


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
    """

    rows: Rows
    verdicts: PhaseVerdicts | None = None
    scores: PhaseScores | None = None
    claimants: Sequence[str] = ()
    failures: Sequence[str] = ()

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

    def reason(self, position: int) -> PluginRejection | None:
        """Return why the node at a position is rejected, None if it is not."""
        code = int(self.codes[position])
        return self.verdicts.reasons[code - 1] if code and self.verdicts is not None else None

    def opinions(self, position: int) -> dict[str, tuple[int, float]]:
        """Return weight and normalised score of the node at a position, by plugin."""
        if self.scores is None or not self.scored[position]:
            return {}
        index = int(np.count_nonzero(self.scored[:position]))
        return {
            each.plugin: (each.weight, float(each.normalized[index]))
            for each in self.scores.plugins
        }

    def parts(self, position: int) -> dict[str, float]:
        """Return what each plugin adds to the total of the node at a position."""
        opinions = self.opinions(position)
        weights = sum(weight for weight, _ in opinions.values())
        return {name: weight * score / weights for name, (weight, score) in opinions.items()}


Opinion = tuple[int, float]
"""Weight and normalised score."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VerdictChange:
    """Nodes, in ascending rows, whose verdicts changed alike; None stands for none."""

    rows: Rows
    before: PluginRejection | None
    after: PluginRejection | None

    @property
    def reason(self) -> PluginRejection:
        """Why the nodes are rejected now, or were before."""
        reason = self.after or self.before
        assert reason is not None  # noqa: S101 - else nothing changed
        return reason


class Decisive(NamedTuple):
    """The score plugin that decides between two nodes, with its opinions of both, if it has any."""

    plugin: str
    before: tuple[Opinion | None, Opinion | None]
    after: tuple[Opinion | None, Opinion | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """What changes from one outcome to another; worked out when asked."""

    before: Outcome
    after: Outcome
    name_at: NameAt

    @cached_property
    def verdicts(self) -> Sequence[VerdictChange]:
        """The nodes whose verdicts differ, in order of the first row of each change."""
        before, after = self.before, self.after
        if len(before.rows) != len(after.rows):
            return []  # one of them failed
        numbers: dict[tuple[str, str], int] = {}
        one, other = _numbered(before, numbers), _numbered(after, numbers)
        changed = np.flatnonzero(one != other)
        pairs = one[changed] * (len(numbers) + 1) + other[changed]
        _, firsts, groups = np.unique(pairs, return_index=True, return_inverse=True)
        changes = [
            VerdictChange(
                rows=before.rows[changed[groups == group]],
                before=before.reason(int(changed[first])),
                after=after.reason(int(changed[first])),
            )
            for group, first in enumerate(firsts.tolist())
        ]
        return sorted(changes, key=lambda change: int(change.rows[0]))

    @property
    def best(self) -> tuple[int | None, int | None] | None:
        """The best node of each by position, None without a feasible one.

        There is none if each best node of the first is one of the second too.
        """
        before, after = self.before.best, self.after.best
        only = np.flatnonzero(before & ~after)
        if not len(only) and before.any() == after.any():
            return None
        return (int(only[0]) if len(only) else None, int(np.argmax(after)) if after.any() else None)

    def decisive(self, first: int, second: int) -> Decisive | None:
        """Return the score plugin that decides between two positions; None if that is not known.

        Of the plugins that changed in weight or scores, it is the one whose part in the distance
        between the two nodes' totals changed most.
        """
        was, now = (
            (outcome.opinions(first), outcome.opinions(second))
            for outcome in (self.before, self.after)
        )
        plugins = dict.fromkeys(name for each in (*now, *was) for name in each)
        changed = dict.fromkeys(
            name
            for name in plugins
            if any(one.get(name) != other.get(name) for one, other in zip(was, now, strict=True))
        )
        if not plugins:
            return None
        leads = [
            _lead(outcome.parts(second), outcome.parts(first))
            for outcome in (self.before, self.after)
        ]
        plugin = max(
            changed or plugins, key=lambda name: leads[1].get(name, 0.0) - leads[0].get(name, 0.0)
        )
        return Decisive(
            plugin,
            (was[0].get(plugin), was[1].get(plugin)),
            (now[0].get(plugin), now[1].get(plugin)),
        )


def _numbered(outcome: Outcome, numbers: dict[tuple[str, str], int]) -> npt.NDArray[np.int64]:
    """Return the verdicts with the same number for the same reason, whatever outcome it is of."""
    reasons = outcome.verdicts.reasons if outcome.verdicts is not None else ()
    known = [numbers.setdefault((each.plugin, each.text), len(numbers) + 1) for each in reasons]
    return np.array([0, *known], np.int64)[outcome.codes]


def _lead(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: part - other.get(name, 0.0) for name, part in one.items()}
