"""Compares two outcomes of one cycle: verdicts, own rankings, and the winner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

import numpy as np
import numpy.typing as npt

from cli.whatif.replay.outcome import Outcome, Reason, Rows

EQUAL = 1e-4
"""Totals, of 0..100, that differ by less are the same: they have single precision."""

Change = Literal["rejects", "passes", "other reason"]
Certainty = Literal["exact", "likely"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictChange:
    """A node whose verdict changed.

    Attributes:
        row: The node.
        before: Why it was rejected; None if it was not.
        after: The same now.
    """

    row: int
    before: Reason | None
    after: Reason | None

    @property
    def change(self) -> Change:
        """What changed."""
        if self.before is None:
            return "rejects"
        return "passes" if self.after is None else "other reason"

    @property
    def plugin(self) -> str:
        """The plugin that decides now, or that did before."""
        reason = self.after or self.before
        return reason.plugin if reason else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """Where the pod goes, None if nowhere; and whether that is certain."""

    before: int | None
    after: int | None
    certainty: Certainty

    @property
    def is_changed(self) -> bool:
        """Whether it is another one."""
        return self.before != self.after


def verdict_changes(before: Outcome, after: Outcome) -> Sequence[VerdictChange]:
    """Return the nodes whose verdicts differ."""
    numbers: dict[Reason, int] = {}
    one, other = _numbered(before, numbers), _numbered(after, numbers)
    if not np.array_equal(before.rows, after.rows):
        return []  # one of them was not filtered
    return [
        VerdictChange(row=row, before=before.reason_of(row), after=after.reason_of(row))
        for row in before.rows[one != other].tolist()
    ]


def _numbered(outcome: Outcome, numbers: dict[Reason, int]) -> npt.NDArray[np.int64]:
    known = [numbers.setdefault(reason, len(numbers) + 1) for reason in outcome.reasons]
    return np.array([0, *known], np.int64)[outcome.codes]


def ranking_changed(before: Outcome, after: Outcome) -> bool:
    """Whether nodes that are feasible in both have another order, or others are the best."""
    if len(before.scored) == len(after.scored) == 0:
        return False
    common = np.intersect1d(before.scored, after.scored)
    one, other = _totals_of(before, common), _totals_of(after, common)
    if len(common) == len(before.scored) == len(after.scored) and _equal(one, other):
        return False
    if not np.array_equal(before.best, after.best):
        return True
    return not np.array_equal(_ranks(one), _ranks(other))


def scores_differ(before: Outcome, after: Outcome) -> bool:
    """Whether any total differs."""
    same_nodes = np.array_equal(before.scored, after.scored)
    return not (same_nodes and _equal(before.totals, after.totals))


def differing_plugins(before: Outcome, after: Outcome) -> Iterator[str]:
    """Yield the plugins whose raw scores differ, or that only one outcome has."""
    if not np.array_equal(before.scored, after.scored):
        return
    for plugin in dict.fromkeys([*before.raw, *after.raw]):
        one, other = before.raw.get(plugin), after.raw.get(plugin)
        if one is None or other is None or not np.allclose(one, other, rtol=1e-6, atol=1e-9):
            yield plugin


def winner(before: Outcome, after: Outcome, uid: str, bound: int | None) -> Winner | None:
    """Return where the pod went and where it would go; None if that cannot be known.

    *bound* is the row of the node that it was bound to, None if it was not. Where kube-scheduler
    adds scores of its own, a node is taken to win as before, unless it fell behind Moorage's best.
    """
    was_alone, was = before.alone(uid)
    is_alone, now = after.alone(uid)
    if is_alone and (was_alone or bound is not None):
        return Winner(before=was if was_alone else bound, after=now, certainty="exact")
    first = was if was_alone else bound
    if first is None and not was_alone:
        first = _one_of(before.best, uid)
    if is_alone:
        return Winner(before=first, after=now, certainty="likely") if first is not None else None
    if first is not None and _behind(after, first) <= _behind(before, first) + EQUAL:
        return Winner(before=first, after=first, certainty="likely")
    best = _one_of(after.best if len(after.scored) else after.feasible, uid)
    if best is None or (first is None and not was_alone):
        return None
    return Winner(before=first, after=best, certainty="likely")


def _one_of(rows: Rows, uid: str) -> int | None:
    """Return one of equally good nodes: kube-scheduler takes any, so they are spread here."""
    return int(rows[crc32(uid.encode()) % len(rows)]) if len(rows) else None


def _behind(outcome: Outcome, row: int) -> float:
    """Return by how much a node is behind the best one; endless if it is not feasible."""
    total = outcome.total_of(row)
    if total is not None:
        return float(outcome.totals.max()) - total
    return 0.0 if not len(outcome.scored) and row in outcome.feasible else np.inf


def _totals_of(outcome: Outcome, rows: Rows) -> npt.NDArray[np.float32]:
    return outcome.totals[np.searchsorted(outcome.scored, rows)]


def _equal(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> bool:
    return len(one) == len(other) and np.allclose(one, other, rtol=0, atol=EQUAL)


def _ranks(totals: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """Return each node's place from the worst on; equal totals share one."""
    return np.unique(totals.round(4), return_inverse=True)[1]
