"""What a replay found: counts, and a few examples of each class."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from gateway.cycle.verdicts import Reason
from gateway.whatif.comparing import Comparison, VerdictChange, Winner
from gateway.whatif.outcome import NameAt, Outcome
from gateway.whatif.timeline import Missing, Recorded
from moorage.v1 import journal_pb2 as pb


class _Part(msgspec.Struct, kw_only=True, rename="camel"):
    """A part of the report, as `-o json` shows it."""


class VerdictExample(_Part):
    """A verdict that changed; an empty reason means that the node passes."""

    cycle: int
    pod: str
    node: str
    before: str
    after: str


class PluginVerdicts(_Part):
    """The verdicts that changed because of one plugin, in nodes, and in how many cycles."""

    rejects: int = 0
    passes: int = 0
    other_reason: int = 0
    cycles: int = 0
    examples: list[VerdictExample] = []


class RankingExample(_Part):
    """The best nodes, best first, with their totals."""

    cycle: int
    pod: str
    before: list[tuple[str, float]]
    after: list[tuple[str, float]]


class WinnerExample(_Part):
    """A pod that would go elsewhere; empty if nowhere."""

    cycle: int
    pod: str
    before: str
    after: str
    certainty: str


class Changes(_Part):
    """The classes, in cycles; those of winners exclude each other."""

    verdicts: int = 0
    rankings: int = 0
    winners_exact: int = 0
    winners_likely: int = 0


class Report(_Part):
    """What a replay found.

    Attributes:
        cycles: Those that were replayed.
        unchanged: Those of them that are in no class.
        not_reproducible: Those whose recorded answers the same policy does not give again.
        checked: Whether that was checked.
        blamed: The same by plugin, where one is known.
        winners_known: The cycles whose winner could be compared.
        nodes: Pods by node, before and after.
    """

    policy: str = ""
    segments: int = 0
    begin: float = 0.0
    end: float = 0.0
    cycles: int = 0
    unchanged: int = 0
    changes: Changes = msgspec.field(default_factory=Changes)
    verdicts: dict[str, PluginVerdicts] = {}
    rankings: list[RankingExample] = []
    winners: list[WinnerExample] = []
    winners_known: int = 0
    checked: bool = True
    not_reproducible: int = 0
    blamed: dict[str, int] = {}
    failures: dict[str, int] = {}
    not_replayed: dict[str, int] = {}
    dropped: dict[str, int] = {}
    nodes: dict[str, list[int]] = {}
    notes: list[str] = []

    @property
    def is_changed(self) -> bool:
        """Whether anything is in a class."""
        return self.cycles != self.unchanged


class Findings:
    """Compares cycle by cycle, and adds up."""

    def __init__(self, examples: int) -> None:
        """Keep so many examples of each class."""
        self.report = Report()
        self._examples = examples
        self._before: Counter[str] = Counter()
        self._after: Counter[str] = Counter()

    def note_time(self, time: float) -> None:
        """Note when a cycle ended."""
        self.report.begin = self.report.begin or time
        self.report.end = time

    def check(self, found: Comparison) -> None:
        """Note how what was recorded differs from what the same policy and code answer here."""
        plugins = {change.reason.plugin for change in found.verdicts}
        plugins |= set(found.other_raw_scores())
        if found.verdicts or found.is_scored_otherwise or found.after.error:
            self.report.not_reproducible += 1
            for plugin in plugins:
                self.report.blamed[plugin] = self.report.blamed.get(plugin, 0) + 1

    def compared(self, recorded: Recorded, found: Comparison, bound: int | None) -> None:
        """Add what changes in a cycle whose pod was bound to the node in row *bound*."""
        self.report.cycles += 1
        pod, cycle = recorded.pod, recorded.cycle
        name = f"{pod.namespace}/{pod.name}"
        if error := found.after.error:
            self.report.failures[error] = self.report.failures.get(error, 0) + 1
            return
        if found.verdicts:
            self._add_verdicts(cycle.id, name, found)
        is_ranking = found.is_ranked_otherwise
        if is_ranking:
            self._add_ranking(cycle.id, name, found)
        winner = None
        if cycle.kind == pb.JOURNAL_CYCLE_KIND_FILTER and not cycle.plugin:
            winner = found.winner(pod.uid, bound)
        if winner is not None:
            self._add_winner(cycle.id, name, winner, found.name_at)
        is_winner = winner is not None and winner.is_changed
        self.report.unchanged += not (found.verdicts or is_ranking or is_winner)

    def finish(self, missing: Missing) -> Report:
        """Return the report."""
        report = self.report
        report.not_replayed, report.dropped = missing.causes, missing.dropped
        report.notes += missing.notes
        names = self._before.keys() | self._after.keys()
        ranked = sorted(names, key=lambda name: (-abs(self._gain(name)), name))
        report.nodes = {n: [self._before[n], self._after[n]] for n in ranked if self._gain(n)}
        return report

    def _gain(self, node: str) -> int:
        return self._after[node] - self._before[node]

    def _add_verdicts(self, cycle: int, pod: str, found: Comparison) -> None:
        self.report.changes.verdicts += 1
        for plugin in {change.reason.plugin for change in found.verdicts}:
            part = self.report.verdicts.setdefault(plugin, PluginVerdicts())
            part.cycles += 1
            own = [change for change in found.verdicts if change.reason.plugin == plugin]
            part.rejects += _nodes(each for each in own if each.change == "rejects")
            part.passes += _nodes(each for each in own if each.change == "passes")
            part.other_reason += _nodes(each for each in own if each.change == "other reason")
            if len(part.examples) < self._examples:
                first = own[0]
                example = VerdictExample(
                    cycle=cycle,
                    pod=pod,
                    node=found.name_at(int(first.rows[0])) or "",
                    before=_text(first.before),
                    after=_text(first.after),
                )
                part.examples.append(example)

    def _add_ranking(self, cycle: int, pod: str, found: Comparison) -> None:
        self.report.changes.rankings += 1
        if len(self.report.rankings) < self._examples:
            tops = (_top(each, found.name_at) for each in (found.before, found.after))
            before, after = tops
            self.report.rankings.append(
                RankingExample(cycle=cycle, pod=pod, before=before, after=after)
            )

    def _add_winner(self, cycle: int, pod: str, found: Winner, name_at: NameAt) -> None:
        self.report.winners_known += 1
        before, after = (
            "" if row is None else name_at(row) or "" for row in (found.before, found.after)
        )
        self._before[before] += 1
        self._after[after] += 1
        if not found.is_changed:
            return
        if found.certainty == "exact":
            self.report.changes.winners_exact += 1
        else:
            self.report.changes.winners_likely += 1
        if len(self.report.winners) < self._examples:
            example = WinnerExample(
                cycle=cycle, pod=pod, before=before, after=after, certainty=found.certainty
            )
            self.report.winners.append(example)


def _nodes(changes: Iterable[VerdictChange]) -> int:
    return sum(len(each.rows) for each in changes)


def _text(reason: Reason | None) -> str:
    return f"{reason.plugin}: {reason.text}" if reason is not None else ""


def _top(outcome: Outcome, name_at: NameAt, count: int = 3) -> list[tuple[str, float]]:
    rows, totals = outcome.rows[outcome.scored], outcome.totals[outcome.scored]
    order = (-totals).argsort(kind="stable")[:count]
    return [(name_at(int(rows[i])) or "", round(float(totals[i]), 3)) for i in order]
