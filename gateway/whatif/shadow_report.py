"""What is known about shadows, as `GET /shadow` shows it, and in what words."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from msgspec import field

from gateway.cycle.decision import Record
from gateway.whatif.comparing import Comparison, Opinion

Kind = Literal["filter", "winner"]
"""In what a shadow disagrees: which nodes can run the pod, or which one is the best."""

Skip = Literal["busy", "share", "changed", "live failed"]
"""Why a cycle was not compared: another one came or ran, the share of the time is used up, no
replica could show its state any more, or the live profile has no answer."""

SKIPS: tuple[Skip, ...] = ("busy", "share", "changed", "live failed")


class FilterDifference(Record):
    """Nodes on which one of the two profiles rejects the pod: its plugin and reason.

    `by` is who does; `node` is one of them.
    """

    by: Literal["live", "shadow"]
    plugin: str
    reason: str
    nodes: int
    node: str


class WinnerDifference(Record):
    """The best node of both profiles, "" if there is none, and what decides between the two.

    `text` is the reason in words with numbers; `reason` is the same without nodes and numbers.
    With `is_rejection` one of the two profiles rejects the other's best node.
    """

    live: str
    shadow: str
    plugin: str
    reason: str
    text: str
    is_rejection: bool = False


class Disagreement(Record):
    """A cycle in which a shadow would have decided otherwise.

    Attributes:
        id: That of the decision.
        nodes: How many nodes the cycle was about.
        feasible: How many of them the live profile lets pass.
        shadow_feasible: How many of them the shadow does.
        live: The live profile's best node if the shadow has another one.
        shadow: The shadow's best node if it is another one.
        reasons: Why, in words.
    """

    id: str
    time: datetime
    namespace: str
    pod: str
    uid: str
    nodes: int
    feasible: int
    shadow_feasible: int
    live: str = ""
    shadow: str = ""
    reasons: list[str] = field(default_factory=list)
    filter: list[FilterDifference] = field(default_factory=list)
    winner: WinnerDifference | None = None


class ReasonCycles(Record):
    """In how many cycles a shadow disagreed for one reason."""

    kind: Kind
    plugin: str
    reason: str
    cycles: int


class ShadowReport(Record, omit_defaults=False):
    """A shadow, since it or its profile last changed.

    Attributes:
        agreement: The share of the compared cycles in which it agreed; None before the first.
        rank_correlation: The mean of Kendall's tau over the best nodes, -1..1; None before the
            first.
        max_share: The share of the time that it may take.
        share: The share that it took.
        last_failure: Why it failed last.
        reasons: Those that are most frequent, in descending order.
        disagreements: The newest, newest first.
    """

    profile: str
    since: datetime
    policy_revision: str
    max_share: float
    share: float
    agreement: float | None
    rank_correlation: float | None
    compared: int
    agreed: int
    disagreed_filter: int
    disagreed_winner: int
    failed: int
    last_failure: str
    skipped: dict[str, int]
    reasons: list[ReasonCycles]
    disagreements: list[Disagreement]


MOST_DIFFERENCES = 10
"""Reasons of rejections that are kept of one cycle."""


def filter_differences(found: Comparison) -> list[FilterDifference]:
    """Return why one of the two rejects nodes that are feasible for the other, most nodes first."""
    differences = [
        FilterDifference(
            by="shadow" if change.change == "rejects" else "live",
            plugin=change.reason.plugin,
            reason=change.reason.text,
            nodes=len(change.rows),
            node=found.name_at(int(change.rows[0])) or "",
        )
        for change in found.verdicts
        if change.change != "other reason"
    ]
    differences.sort(key=lambda each: -each.nodes)
    return differences[:MOST_DIFFERENCES]


def winner_difference(found: Comparison) -> WinnerDifference | None:
    """Return the best nodes and what decides between them; None if they agree."""
    if found.best is None:
        return None
    before, after = found.best
    rows = found.before.rows
    live, shadow = (
        "" if position is None else found.name_at(int(rows[position])) or ""
        for position in found.best
    )
    if before is not None and (rejection := found.after.reason(before)) is not None:
        return WinnerDifference(
            live=live,
            shadow=shadow,
            plugin=rejection.plugin,
            reason=f"rejects the live winner: {rejection.text}",
            text=f"the shadow rejects {live}: {rejection.text}",
            is_rejection=True,
        )
    if after is not None and (rejection := found.before.reason(after)) is not None:
        return WinnerDifference(
            live=live,
            shadow=shadow,
            plugin=rejection.plugin,
            reason=f"no longer rejects the new winner: {rejection.text}",
            text=f"only the live profile rejects {shadow}: {rejection.text}",
            is_rejection=True,
        )
    assert before is not None  # noqa: S101 - else one rejects the other's best node
    assert after is not None  # noqa: S101 - the same
    plugin, reason, text = _score_reason(found, before, after, (live, shadow))
    return WinnerDifference(live=live, shadow=shadow, plugin=plugin, reason=reason, text=text)


def _score_reason(
    found: Comparison, before: int, after: int, names: tuple[str, str]
) -> tuple[str, str, str]:
    """Return the plugin that decides, why without nodes, and the same with nodes and numbers."""
    decisive = found.decisive(before, after)
    if decisive is None:
        return "", "other scores", "the scores differ"
    was, now = decisive.before, decisive.after
    reason = _change(was[0] or was[1], now[0] or now[1])
    shown = _joined(_scores(was, names), _scores(now, names))
    return decisive.plugin, reason, f"{decisive.plugin} {reason}: {shown}"


def _change(was: Opinion | None, now: Opinion | None) -> str:
    """Return how a plugin's part changed."""
    if was is None or now is None:
        return "scores only in the shadow" if was is None else "does not score in the shadow"
    if was[0] != now[0]:
        return f"has weight {now[0]} instead of {was[0]}"
    return "scores otherwise"


def _scores(pair: tuple[Opinion | None, Opinion | None], names: tuple[str, str]) -> str:
    """Return the scores of both nodes in words."""
    return ", ".join(
        f"{name} {opinion[1]:.4g}" for name, opinion in zip(names, pair, strict=True) if opinion
    )


def _joined(was: str, now: str) -> str:
    if was == now or not was or not now:
        return now or was
    return f"{now}; live {was}"


def words(differences: list[FilterDifference], winner: WinnerDifference | None) -> Iterator[str]:
    """Yield why they disagree, in words."""
    for each in differences:
        who = "shadow" if each.by == "shadow" else "live profile"
        more = f" and {each.nodes - 1} more" if each.nodes > 1 else ""
        yield f"only the {who} rejects {each.node}{more}: {each.plugin}: {each.reason}"
    if winner is not None and not winner.is_rejection:
        yield winner.text
