"""Why two outcomes of a cycle differ: which nodes can run the pod, and which one is the best."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from gateway.cycle.decision import Record
from gateway.whatif.comparing import Comparison, Opinion

Kind = Literal["filter", "reason", "winner"]
"""In what outcomes differ: which nodes can run the pod, why others cannot, which is the best."""


class Sides(NamedTuple):
    """What the two outcomes are called."""

    before: str
    after: str


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


class ReasonCycles(Record):
    """In how many cycles outcomes differed for one reason, and the first of them."""

    kind: Kind
    plugin: str
    reason: str
    cycles: int
    example: str = ""


def differences(found: Comparison, sides: Sides) -> list[Difference]:
    """Return why two outcomes differ; rejections first, those of most nodes before others."""
    rejections = []
    for change in sorted(found.verdicts, key=lambda change: -len(change.rows)):
        node, others = found.name_at(int(change.rows[0])) or "", len(change.rows) - 1
        which = f"{node} and {others} more" if others else node
        plugin, text = change.reason.plugin, change.reason.text
        if change.before is not None and change.after is not None:
            reason = f"rejects for another reason: {text}"
            shown = f"{plugin} rejects {which}: {text}, no longer {change.before.text}"
            rejections.append(Difference("reason", plugin, reason, shown))
        else:
            who = sides.after if change.before is None else sides.before
            reason = f"only the {who} rejects: {text}"
            shown = f"only the {who} rejects {which}: {plugin}: {text}"
            rejections.append(Difference("filter", plugin, reason, shown))
    return [*rejections, *_winner(found, sides)]


def best_nodes(found: Comparison) -> tuple[str, str]:
    """Return the best node of both, "" if there is none; empty ones if they agree."""
    rows = found.before.rows
    before, after = (
        "" if position is None else found.name_at(int(rows[position])) or ""
        for position in found.best or (None, None)
    )
    return before, after


def _winner(found: Comparison, sides: Sides) -> Iterator[Difference]:
    """Yield what decides between the two best nodes, if they differ."""
    if found.best is None:
        return
    before, after = found.best
    if before is not None and (rejection := found.after.reason(before)) is not None:
        reason = f"rejects the {sides.before}'s winner: {rejection.text}"
        yield Difference("winner", rejection.plugin, reason, "")
    elif after is not None and (rejection := found.before.reason(after)) is not None:
        reason = f"no longer rejects the {sides.after}'s winner: {rejection.text}"
        yield Difference("winner", rejection.plugin, reason, "")
    elif before is not None and after is not None:
        yield _scores_differ(found, before, after, sides)


def _scores_differ(found: Comparison, before: int, after: int, sides: Sides) -> Difference:
    decisive = found.decisive(before, after)
    if decisive is None:
        return Difference("winner", "", "other scores", "the scores differ")
    was, now = decisive.before, decisive.after
    reason = _change(was[0] or was[1], now[0] or now[1], sides.after)
    names = best_nodes(found)
    former, newer = _scores(was, names), _scores(now, names)
    shown = newer or former
    if former and newer and former != newer:
        shown = f"{newer}; {sides.before} {former}"
    return Difference("winner", decisive.plugin, reason, f"{decisive.plugin} {reason}: {shown}")


def _change(was: Opinion | None, now: Opinion | None, who: str) -> str:
    """Return how a plugin's part changed."""
    if was is None or now is None:
        return f"scores only in the {who}" if was is None else f"does not score in the {who}"
    if was[0] != now[0]:
        return f"has weight {now[0]} instead of {was[0]}"
    return "scores otherwise"


def _scores(pair: tuple[Opinion | None, Opinion | None], names: tuple[str, str]) -> str:
    """Return the scores of both nodes in words."""
    return ", ".join(
        f"{name} {opinion[1]:.4g}" for name, opinion in zip(names, pair, strict=True) if opinion
    )
