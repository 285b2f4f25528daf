"""What is known about shadows, as `GET /shadow` shows it, and the time that they take."""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Literal

from msgspec import field

from gateway.decisions.cycle import SchedulingCycle
from gateway.decisions.records import Record
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


def _words(differences: list[FilterDifference], winner: WinnerDifference | None) -> Iterator[str]:
    """Yield why they disagree, in words."""
    for each in differences:
        who = "shadow" if each.by == "shadow" else "live profile"
        more = f" and {each.nodes - 1} more" if each.nodes > 1 else ""
        yield f"only the {who} rejects {each.node}{more}: {each.plugin}: {each.reason}"
    if winner is not None and not winner.is_rejection:
        yield winner.text


BURST_SECONDS = 1.0
"""Of how many seconds the share can be saved up: in a quiet time nothing more is."""


class Budget:
    """A token bucket: the seconds that may be spent on the shadow of one profile.

    Attributes:
        spent: The seconds that were spent in all.
    """

    def __init__(self, share: float, clock: Callable[[], float]) -> None:
        """Allow a *share* of the time on *clock*, 0..1."""
        self.share = share
        self.spent = 0.0
        self._clock = clock
        self._began = self._filled = clock()
        self._left = share * BURST_SECONDS

    @property
    def allows(self) -> bool:
        """Whether something may be spent now; how much is known only afterwards."""
        now = self._clock()
        saved = self._left + (now - self._filled) * self.share
        self._left, self._filled = min(saved, self.share * BURST_SECONDS), now
        return self._left > 0

    @property
    def used(self) -> float:
        """The share of the time that was spent so far, 0..1."""
        return self.spent / max(self._clock() - self._began, 1e-9)

    def spend(self, seconds: float) -> None:
        """Take what a run needed; perhaps more than is left, which later time makes good."""
        self.spent += seconds
        self._left -= seconds


COUNTED_REASONS = 256
"""Different reasons that are counted; further ones are left out."""

SHOWN_REASONS = 10
"""Reasons that a report has, the most frequent."""


class Tally:
    """Counts, and the newest disagreements.

    Attributes:
        revision: The revision of the policy.
        budget: The time that the shadow may take.
    """

    def __init__(self, profile: str, revision: str, budget: Budget, kept: int) -> None:
        """Keep the newest disagreements, at most so many."""
        self.revision = revision
        self.budget = budget
        self._profile = profile
        self._since = datetime.now(UTC).replace(microsecond=0)
        self._compared = 0
        self._agreed = 0
        self._kinds: Counter[Kind] = Counter()
        self._skipped: Counter[Skip] = Counter()
        self._failed = 0
        self._last_failure = ""
        self._correlations = [0, 0.0]
        self._reasons: Counter[tuple[Kind, str, str]] = Counter()
        self._disagreements: deque[Disagreement] = deque(maxlen=kept)

    def skipped(self, reason: Skip) -> None:
        """Count a cycle that was not compared."""
        self._skipped[reason] += 1

    def failed(self, reason: str) -> None:
        """Count a cycle in which the shadow gave no answer."""
        self._failed += 1
        self._last_failure = reason

    def compared(self, cycle: SchedulingCycle, found: Comparison) -> list[Kind]:
        """Count a comparison, and keep it if they disagree; return in what they do."""
        differences, winner = filter_differences(found), winner_difference(found)
        kinds: list[Kind] = ["filter"] * bool(differences)
        kinds += ["winner"] * (winner is not None)
        self._compared += 1
        if (correlation := found.correlation) is not None:
            self._correlations[0] += 1
            self._correlations[1] += correlation
        if not kinds:
            self._agreed += 1
            return kinds
        self._kinds.update(kinds)
        for reason in _reasons(differences, winner):
            if reason in self._reasons or len(self._reasons) < COUNTED_REASONS:
                self._reasons[reason] += 1
        pod = cycle.request.pod
        self._disagreements.appendleft(
            Disagreement(
                id=cycle.decision.id,
                time=cycle.decision.time,
                namespace=pod.namespace,
                pod=pod.name,
                uid=pod.uid,
                nodes=len(found.before.rows),
                feasible=int(found.before.feasible.sum()),
                shadow_feasible=int(found.after.feasible.sum()),
                live=winner.live if winner else "",
                shadow=winner.shadow if winner else "",
                reasons=list(_words(differences, winner)),
                filter=differences,
                winner=winner,
            )
        )
        return kinds

    def report(self) -> ShadowReport:
        """Return all that."""
        ordered, total = self._correlations
        return ShadowReport(
            profile=self._profile,
            since=self._since,
            policy_revision=self.revision,
            max_share=self.budget.share,
            share=round(self.budget.used, 4),
            agreement=self._agreed / self._compared if self._compared else None,
            rank_correlation=total / ordered if ordered else None,
            compared=self._compared,
            agreed=self._agreed,
            disagreed_filter=self._kinds["filter"],
            disagreed_winner=self._kinds["winner"],
            failed=self._failed,
            last_failure=self._last_failure,
            skipped={reason: self._skipped[reason] for reason in SKIPS},
            reasons=[
                ReasonCycles(kind=kind, plugin=plugin, reason=reason, cycles=cycles)
                for (kind, plugin, reason), cycles in self._reasons.most_common(SHOWN_REASONS)
            ],
            disagreements=list(self._disagreements),
        )


def _reasons(
    differences: list[FilterDifference], winner: WinnerDifference | None
) -> set[tuple[Kind, str, str]]:
    reasons: set[tuple[Kind, str, str]] = set()
    for each in differences:
        who = "shadow" if each.by == "shadow" else "live profile"
        reasons.add(("filter", each.plugin, f"only the {who} rejects: {each.reason}"))
    if winner is not None:
        reasons.add(("winner", winner.plugin, winner.reason))
    return reasons
