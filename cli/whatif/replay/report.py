"""What a replay found: counts, and a few examples of each class."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from cli.whatif.replay.comparing import (
    VerdictChange,
    Winner,
    differing_plugins,
    ranking_changed,
    scores_differ,
    verdict_changes,
    winner,
)
from cli.whatif.replay.outcome import Outcome
from cli.whatif.replay.timeline import Missing, Recorded
from moorage.snapshot import Snapshot
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

    def check(self, recorded: Outcome, again: Outcome) -> None:
        """Compare what was recorded with what the same policy and code answer here."""
        verdicts = verdict_changes(recorded, again)
        plugins = {change.plugin for change in verdicts}
        differs = bool(verdicts) or scores_differ(recorded, again) or bool(again.error)
        plugins |= set(differing_plugins(recorded, again))
        if differs:
            self.report.not_reproducible += 1
            for plugin in plugins:
                self.report.blamed[plugin] = self.report.blamed.get(plugin, 0) + 1

    def compare(
        self, recorded: Recorded, before: Outcome, after: Outcome, snapshot: Snapshot, node: str
    ) -> None:
        """Compare two outcomes of a cycle whose pod was bound to *node*, "" if to none."""
        self.report.cycles += 1
        pod, cycle = recorded.pod, recorded.cycle
        name = f"{pod.namespace}/{pod.name}"
        if after.error:
            self.report.failures[after.error] = self.report.failures.get(after.error, 0) + 1
            return
        verdicts = verdict_changes(before, after)
        if verdicts:
            self._add_verdicts(cycle.id, name, verdicts, snapshot)
        is_ranking = ranking_changed(before, after)
        if is_ranking:
            self._add_ranking(cycle.id, name, before, after, snapshot)
        is_winner = False
        if cycle.kind == pb.JOURNAL_CYCLE_KIND_FILTER and not cycle.plugin:
            found = winner(before, after, pod.uid, snapshot.row_of(node))
            is_winner = found is not None and found.is_changed
            if found is not None:
                self._add_winner(cycle.id, name, found, snapshot)
        self.report.unchanged += not (verdicts or is_ranking or is_winner)

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

    def _add_verdicts(
        self, cycle: int, pod: str, verdicts: Sequence[VerdictChange], snapshot: Snapshot
    ) -> None:
        self.report.changes.verdicts += 1
        for plugin in {change.plugin for change in verdicts}:
            part = self.report.verdicts.setdefault(plugin, PluginVerdicts())
            part.cycles += 1
            own = [change for change in verdicts if change.plugin == plugin]
            counts = Counter(change.change for change in own)
            part.rejects += counts["rejects"]
            part.passes += counts["passes"]
            part.other_reason += counts["other reason"]
            if len(part.examples) < self._examples:
                first = own[0]
                example = VerdictExample(
                    cycle=cycle,
                    pod=pod,
                    node=_name(snapshot, first.row),
                    before=str(first.before or ""),
                    after=str(first.after or ""),
                )
                part.examples.append(example)

    def _add_ranking(
        self, cycle: int, pod: str, before: Outcome, after: Outcome, snapshot: Snapshot
    ) -> None:
        self.report.changes.rankings += 1
        if len(self.report.rankings) < self._examples:
            example = RankingExample(
                cycle=cycle, pod=pod, before=_top(before, snapshot), after=_top(after, snapshot)
            )
            self.report.rankings.append(example)

    def _add_winner(self, cycle: int, pod: str, found: Winner, snapshot: Snapshot) -> None:
        self.report.winners_known += 1
        before, after = _name(snapshot, found.before), _name(snapshot, found.after)
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


def to_json(report: Report) -> str:
    """Return a report as JSON text."""
    content: Any = msgspec.to_builtins(report)
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def _name(snapshot: Snapshot, row: int | None) -> str:
    node = None if row is None else snapshot.node_at(row)
    return node.name if node else ""


def _top(outcome: Outcome, snapshot: Snapshot, count: int = 3) -> list[tuple[str, float]]:
    order = (-outcome.totals).argsort(kind="stable")[:count]
    return [
        (_name(snapshot, int(outcome.scored[i])), round(float(outcome.totals[i]), 3)) for i in order
    ]
