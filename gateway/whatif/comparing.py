"""Compares two outcomes of one cycle, on the same nodes: verdicts, scores, ranking and winner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from gateway.cycle.nodes import Rows
from gateway.cycle.verdicts import Reason
from gateway.whatif.outcome import EQUAL, NameAt, Outcome, one_of

Change = Literal["rejects", "passes", "other reason"]
Certainty = Literal["exact", "likely"]
Opinion = tuple[int, float]
"""Weight and normalised score."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VerdictChange:
    """Nodes whose verdicts changed alike.

    Attributes:
        rows: The nodes, ascending.
        before: Why they were rejected; None if they were not.
        after: The same now.
    """

    rows: Rows
    before: Reason | None
    after: Reason | None

    @property
    def change(self) -> Change:
        """What changed."""
        if self.before is None:
            return "rejects"
        return "passes" if self.after is None else "other reason"

    @property
    def reason(self) -> Reason:
        """Why the nodes are rejected now, or were before."""
        reason = self.after or self.before
        assert reason is not None  # noqa: S101 - else nothing changed
        return reason


class BestChange(NamedTuple):
    """The best node of both outcomes, by position; None if no node is feasible."""

    before: int | None
    after: int | None


class Decisive(NamedTuple):
    """The score plugin that decides between two nodes, with its opinions of both, if it has any."""

    plugin: str
    before: tuple[Opinion | None, Opinion | None]
    after: tuple[Opinion | None, Opinion | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """In which row the pod ends up, None if nowhere; and whether that is certain."""

    before: int | None
    after: int | None
    certainty: Certainty

    @property
    def is_changed(self) -> bool:
        """Whether it is another one."""
        return self.before != self.after


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
    def is_scored_otherwise(self) -> bool:
        """Whether any total differs."""
        before, after = self.before, self.after
        return not (
            np.array_equal(before.rows[before.scored], after.rows[after.scored])
            and np.allclose(before.totals[before.scored], after.totals[after.scored], 0, EQUAL)
        )

    @property
    def is_ranked_otherwise(self) -> bool:
        """Whether nodes that are scored in both have another order, or others are the best."""
        before, after = self.before, self.after
        if not self.is_scored_otherwise:
            return False
        if not np.array_equal(before.best & before.scored, after.best & after.scored):
            return True
        common = before.scored & after.scored
        return not np.array_equal(_ranks(before.totals[common]), _ranks(after.totals[common]))

    @property
    def best(self) -> BestChange | None:
        """The best nodes, unless each best node of the first is one of the second too."""
        before, after = self.before.best, self.after.best
        only = np.flatnonzero(before & ~after)
        if not len(only) and before.any() == after.any():
            return None
        return BestChange(
            int(only[0]) if len(only) else None, int(np.argmax(after)) if after.any() else None
        )

    def other_raw_scores(self) -> Iterator[str]:
        """Yield the plugins whose raw scores differ, or that only one outcome has."""
        before, after = self.before, self.after
        if not np.array_equal(before.rows[before.scored], after.rows[after.scored]):
            return
        one, other = (
            {each.plugin: each.raw for each in outcome.scores.plugins} if outcome.scores else {}
            for outcome in (before, after)
        )
        for plugin in dict.fromkeys([*one, *other]):
            if not (
                plugin in one
                and plugin in other
                and np.allclose(one[plugin], other[plugin], rtol=1e-6, atol=1e-9)
            ):
                yield plugin

    def decisive(self, first: int, second: int) -> Decisive | None:
        """Return the score plugin that decides between two positions; None if that is not known.

        Of the plugins that changed in weight or scores, it is the one whose part in the distance
        between the two nodes' totals changed most. No journal has normalised scores.
        """
        was, now = (
            (outcome.opinions(first), outcome.opinions(second))
            for outcome in (self.before, self.after)
        )
        for outcome, opinions in ((self.before, was), (self.after, now)):
            if outcome.scores is not None and outcome.scored[first] and not opinions[0]:
                return None
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

    def winner(self, uid: str, bound: int | None) -> Winner | None:
        """Return where the pod went and where it would go; None if that cannot be known.

        *bound* is the row of the node that it was bound to, None if it was not. Where
        kube-scheduler adds scores of its own, a node is taken to win as before, unless it fell
        behind Moorage's best.
        """
        before, after = self.before, self.after
        was, now = before.choice(uid, self.name_at), after.choice(uid, self.name_at)
        if now.is_alone and (was.is_alone or bound is not None):
            first = was.row if was.is_alone else bound
            return Winner(before=first, after=now.row, certainty="exact")
        first = was.row if was.is_alone else bound
        if first is None and not was.is_alone:
            if before.scores is None:
                return None
            first = one_of(before.rows[before.best], uid, self.name_at)
        if now.is_alone:
            return Winner(before=first, after=now.row, certainty="likely")
        if first is not None and _behind(after, first) <= _behind(before, first) + EQUAL:
            return Winner(before=first, after=first, certainty="likely")
        best = one_of(after.rows[after.best], uid, self.name_at)
        return Winner(before=first, after=best, certainty="likely")


def _numbered(outcome: Outcome, numbers: dict[tuple[str, str], int]) -> npt.NDArray[np.int64]:
    """Return the verdicts with the same number for the same reason, whatever outcome it is of."""
    reasons = outcome.verdicts.reasons if outcome.verdicts is not None else ()
    known = [numbers.setdefault((each.plugin, each.text), len(numbers) + 1) for each in reasons]
    return np.array([0, *known], np.int64)[outcome.codes]


def _ranks(totals: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return each node's place from the worst on; equal totals share one."""
    return np.unique(totals.round(4), return_inverse=True)[1]


def _lead(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: part - other.get(name, 0.0) for name, part in one.items()}


def _behind(outcome: Outcome, row: int) -> float:
    """Return by how much a node is behind the best one; endless if it is not feasible."""
    position = outcome.position_of(row)
    if position is None or not outcome.feasible[position]:
        return np.inf
    return float(np.nanmax(outcome.totals) - outcome.totals[position])
