"""Compares what a profile and its shadow decided about the same pod on the same nodes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gateway.shadow.outcomes import Outcome
from gateway.shadow.reasons import score_reason
from gateway.shadow.records import FilterDifference, Kind, WinnerDifference

MOST_RANKED = 50
"""The best nodes of the live profile whose order is compared."""

MOST_REASONS = 10
"""Reasons of rejections that are kept of one cycle."""

NameAt = Callable[[int], str | None]
"""Returns the name of the node in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How far a shadow agrees.

    Attributes:
        filter: The nodes on which the two differ, by plugin and reason.
        winner: The best nodes, unless each best node of the live profile is one of the shadow too.
        correlation: Kendall's tau-b of the order of the best nodes; None if there is no order.
    """

    filter: list[FilterDifference]
    winner: WinnerDifference | None
    correlation: float | None

    @property
    def kinds(self) -> list[Kind]:
        """In what they disagree."""
        kinds: list[tuple[Kind, bool]] = [
            ("filter", bool(self.filter)),
            ("winner", self.winner is not None),
        ]
        return [kind for kind, differs in kinds if differs]

    def words(self) -> Iterator[str]:
        """Yield why they disagree, in words."""
        for each in self.filter:
            who = "shadow" if each.by == "shadow" else "live profile"
            more = f" and {each.nodes - 1} more" if each.nodes > 1 else ""
            yield f"only the {who} rejects {each.node}{more}: {each.plugin}: {each.reason}"
        if self.winner is not None and not self.winner.is_rejection:
            yield self.winner.text


def compare(live: Outcome, shadow: Outcome, name_at: NameAt) -> Comparison:
    """Compare two outcomes on the same rows."""
    differences = [
        *_rejected("shadow", shadow, by=shadow.codes, where=live.feasible, name_at=name_at),
        *_rejected("live", live, by=live.codes, where=shadow.feasible, name_at=name_at),
    ]
    differences.sort(key=lambda each: -each.nodes)
    return Comparison(
        filter=differences[:MOST_REASONS],
        winner=_winner(live, shadow, name_at),
        correlation=_correlation(live, shadow),
    )


def _rejected(
    who: Literal["live", "shadow"],
    outcome: Outcome,
    *,
    by: npt.NDArray[np.uint16],
    where: npt.NDArray[np.bool_],
    name_at: NameAt,
) -> Iterator[FilterDifference]:
    """Yield why *outcome* rejects nodes that are feasible for the other one."""
    only = np.flatnonzero(where & (by != 0))
    codes, first, counts = np.unique(by[only], return_index=True, return_counts=True)
    for code, position, count in zip(codes, only[first], counts, strict=True):
        reason = outcome.reason(int(position))
        if code and reason is not None:
            yield FilterDifference(
                by=who,
                plugin=reason.plugin,
                reason=reason.text,
                nodes=int(count),
                node=_name(outcome, int(position), name_at),
            )


def _winner(live: Outcome, shadow: Outcome, name_at: NameAt) -> WinnerDifference | None:
    only = np.flatnonzero(live.best & ~shadow.best)
    if not len(only) and live.best.any() == shadow.best.any():
        return None
    before = int(only[0]) if len(only) else None
    after = int(np.argmax(shadow.best)) if shadow.best.any() else None
    names = [
        "" if position is None else _name(live, position, name_at) for position in (before, after)
    ]
    rejected = _rejection(live, shadow, before, after, names)
    if rejected is None:
        assert before is not None  # noqa: S101 - otherwise one rejects the other's winner
        assert after is not None  # noqa: S101 - the same
        plugin, reason, text = score_reason(live, shadow, before, after, names)
    else:
        plugin, reason, text = rejected
    return WinnerDifference(
        live=names[0],
        shadow=names[1],
        plugin=plugin,
        reason=reason,
        text=text,
        is_rejection=rejected is not None,
    )


def _rejection(
    live: Outcome, shadow: Outcome, before: int | None, after: int | None, names: list[str]
) -> tuple[str, str, str] | None:
    """Return the plugin that rejects one of two nodes, why, and the same with the node."""
    if before is not None and (rejection := shadow.reason(before)) is not None:
        reason = f"rejects the live winner: {rejection.text}"
        return rejection.plugin, reason, f"the shadow rejects {names[0]}: {rejection.text}"
    if after is not None and (rejection := live.reason(after)) is not None:
        reason = f"no longer rejects the new winner: {rejection.text}"
        text = f"only the live profile rejects {names[1]}: {rejection.text}"
        return rejection.plugin, reason, text
    return None


def _correlation(live: Outcome, shadow: Outcome) -> float | None:
    """Return Kendall's tau-b over the best nodes of the live profile that both can use."""
    common = np.flatnonzero(live.feasible & shadow.feasible)
    if len(common) > MOST_RANKED:
        order = np.argpartition(-live.totals[common], MOST_RANKED)
        common = common[order[:MOST_RANKED]]
    pairs = np.triu_indices(len(common), 1)
    signs = [_signs(each.totals[common])[pairs] for each in (live, shadow)]
    untied = [np.count_nonzero(each) for each in signs]
    if not all(untied):
        return None
    return float((signs[0] * signs[1]).sum() / np.sqrt(untied[0] * untied[1]))


def _signs(totals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    signs: npt.NDArray[np.float64] = np.sign(np.round(totals[:, None] - totals[None, :], 3))
    return signs


def _name(outcome: Outcome, position: int, name_at: NameAt) -> str:
    return name_at(int(outcome.rows[position])) or ""
