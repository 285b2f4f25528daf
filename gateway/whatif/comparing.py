"""What a cycle found out, and why a shadow decides otherwise on the same nodes.

They differ in which nodes can run the pod, or in which of them is the best.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

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

Kind = Literal["filter", "winner"]
"""In what outcomes differ: which nodes can run the pod, or which is the best."""


class Difference(NamedTuple):
    """A reason why two outcomes differ.

    Attributes:
        kind: In what.
        plugin: The plugin that decides; "" if that is not known.
        reason: In words without nodes and numbers, which are alike for other cycles.
        text: The same with them; "" if another difference has them.
    """

    kind: Kind
    plugin: str
    reason: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """What a profile and its shadow find out in one cycle, about the same nodes."""

    live: Outcome
    shadow: Outcome
    name_at: NameAt

    def differences(self) -> list[Difference]:
        """Return why they differ; rejections first, those of most nodes before others."""
        live, shadow = self.live, self.shadow
        rejections = [
            *_rejections("shadow", shadow, live.feasible),
            *_rejections("live profile", live, shadow.feasible),
        ]
        found = []
        for who, reason, rows in sorted(rejections, key=lambda each: -len(each[2])):
            node, others = self.name_at(int(rows[0])) or "", len(rows) - 1
            which = f"{node} and {others} more" if others else node
            text = f"only the {who} rejects {which}: {reason.plugin}: {reason.text}"
            why = f"only the {who} rejects: {reason.text}"
            found.append(Difference("filter", reason.plugin, why, text))
        return [*found, *self._winner()]

    def best_nodes(self) -> tuple[str, str]:
        """Return the best node of both, "" if there is none; empty ones if they agree."""
        live, shadow = (
            "" if position is None else self.name_at(int(self.live.rows[position])) or ""
            for position in self._best() or (None, None)
        )
        return live, shadow

    def _best(self) -> tuple[int | None, int | None] | None:
        """Return the best node of each by position, None without a feasible one.

        There is none if each best node of the live profile is one of the shadow too.
        """
        live, shadow = self.live.best, self.shadow.best
        only = np.flatnonzero(live & ~shadow)
        if not len(only) and live.any() == shadow.any():
            return None
        return (
            int(only[0]) if len(only) else None,
            int(np.argmax(shadow)) if shadow.any() else None,
        )

    def _winner(self) -> Iterator[Difference]:
        """Yield what decides between the two best nodes, if they differ."""
        if (best := self._best()) is None:
            return
        live, shadow = best
        if live is not None and (rejection := self.shadow.reason(live)) is not None:
            reason = f"rejects the live profile's winner: {rejection.text}"
            yield Difference("winner", rejection.plugin, reason, "")
        elif shadow is not None and (rejection := self.live.reason(shadow)) is not None:
            reason = f"no longer rejects the shadow's winner: {rejection.text}"
            yield Difference("winner", rejection.plugin, reason, "")
        elif live is not None and shadow is not None:
            yield self._scores_differ(live, shadow)

    def _scores_differ(self, first: int, second: int) -> Difference:
        """Return the score plugin that decides between two positions, if that is known.

        Of the plugins that changed in weight or scores, it is the one whose part in the distance
        between the two nodes' totals changed most.
        """
        outcomes = self.live, self.shadow
        before, after = ((each.opinions(first), each.opinions(second)) for each in outcomes)
        plugins = dict.fromkeys(name for each in (*after, *before) for name in each)
        if not plugins:
            return Difference("winner", "", "other scores", "the scores differ")
        changed = [
            name
            for name in plugins
            if any(
                one.get(name) != other.get(name) for one, other in zip(before, after, strict=True)
            )
        ]
        lead, other = (_lead(each.parts(second), each.parts(first)) for each in outcomes)
        plugin = max(
            changed or plugins, key=lambda name: other.get(name, 0.0) - lead.get(name, 0.0)
        )
        was, now = ([each.get(plugin) for each in pair] for pair in (before, after))
        reason = _change(was[0] or was[1], now[0] or now[1])
        names = self.best_nodes()
        former, newer = _scores(was, names), _scores(now, names)
        shown = newer or former
        if former and newer and former != newer:
            shown = f"{newer}; live profile {former}"
        return Difference("winner", plugin, reason, f"{plugin} {reason}: {shown}")


def _rejections(
    who: str, outcome: Outcome, others: Mask
) -> Iterator[tuple[str, PluginRejection, Rows]]:
    """Yield for which reasons *who* rejects which rows that are feasible for the other one."""
    codes = np.where(others, outcome.codes, 0)
    for code in np.unique(codes[codes > 0]).tolist():
        rows = outcome.rows[codes == code]
        if (reason := outcome.reason(int(np.argmax(codes == code)))) is not None:
            yield who, reason, rows


def _change(was: Opinion | None, now: Opinion | None) -> str:
    """Return how a plugin's part changed."""
    if was is None or now is None:
        return "scores only in the shadow" if was is None else "does not score in the shadow"
    if was[0] != now[0]:
        return f"has weight {now[0]} instead of {was[0]}"
    return "scores otherwise"


def _scores(pair: Sequence[Opinion | None], names: tuple[str, str]) -> str:
    """Return the scores of both nodes in words."""
    return ", ".join(
        f"{name} {opinion[1]:.4g}" for name, opinion in zip(names, pair, strict=True) if opinion
    )


def _lead(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: part - other.get(name, 0.0) for name, part in one.items()}
