"""What a replay found: counts, the reasons, and a few examples of pods that would go elsewhere."""

from collections import Counter

from msgspec import field

from gateway.cycle.decision import Record
from gateway.whatif.comparing import Certainty, Comparison, NameAt, Winner
from gateway.whatif.differences import Kind, ReasonCycles, Sides, differences
from gateway.whatif.timeline import Missing, Recorded
from moorage.v1 import journal_pb2 as pb

SIDES = Sides("recording", "replay")


class WinnerExample(Record, omit_defaults=False):
    """A pod that would go elsewhere; empty if nowhere."""

    cycle: int
    pod: str
    before: str
    after: str
    certainty: Certainty


class Changes(Record, omit_defaults=False):
    """The classes, in cycles; those of winners exclude each other."""

    verdicts: int = 0
    rankings: int = 0
    winners_exact: int = 0
    winners_likely: int = 0


class Report(Record, omit_defaults=False):
    """What a replay found.

    Attributes:
        cycles: Those that were replayed.
        unchanged: Those of them that are in no class.
        reasons: Why cycles are in a class, the most frequent first, each with an example.
        not_reproducible: Those whose recorded answers the same policy does not give again.
        checked: Whether that was checked.
        blamed: The same by plugin, where one is known.
        nodes: Pods by node, before and after.
        redacted: Whether annotations were left out of the journal: plugins that read them decide
            otherwise here than live, so nothing about changes is exact.
    """

    policy: str = ""
    segments: int = 0
    begin: float = 0.0
    end: float = 0.0
    cycles: int = 0
    unchanged: int = 0
    changes: Changes = field(default_factory=Changes)
    reasons: list[ReasonCycles] = field(default_factory=list)
    winners: list[WinnerExample] = field(default_factory=list)
    checked: bool = True
    not_reproducible: int = 0
    blamed: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    not_replayed: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, list[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    redacted: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether anything is in a class."""
        return self.cycles != self.unchanged


class Findings:
    """Compares cycle by cycle, and adds up."""

    def __init__(self, examples: int) -> None:
        """Keep so many examples of pods that would go elsewhere."""
        self.report = Report()
        self._examples = examples
        self._reasons: dict[tuple[Kind, str, str], ReasonCycles] = {}
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
        report, pod, cycle = self.report, recorded.pod, recorded.cycle
        report.cycles += 1
        name = f"{pod.namespace}/{pod.name}"
        if error := found.after.error:
            report.failures[error] = report.failures.get(error, 0) + 1
            return
        is_ranking = found.is_ranked_otherwise
        report.changes.verdicts += bool(found.verdicts)
        report.changes.rankings += is_ranking
        if found.verdicts or is_ranking:
            self._add_reasons(cycle.id, name, found)
        winner = None
        if cycle.kind == pb.JOURNAL_CYCLE_KIND_FILTER and not cycle.plugin:
            winner = found.winner(pod.uid, bound)
        if winner is not None:
            self._add_winner(cycle.id, name, winner, found.name_at)
        is_winner = winner is not None and winner.is_changed
        report.unchanged += not (found.verdicts or is_ranking or is_winner)

    def finish(self, missing: Missing) -> Report:
        """Return the report."""
        report = self.report
        report.reasons = sorted(self._reasons.values(), key=lambda each: -each.cycles)
        report.not_replayed, report.dropped = missing.causes, missing.dropped
        report.notes += missing.notes
        report.redacted = missing.is_redacted
        names = self._before.keys() | self._after.keys()
        ranked = sorted(names, key=lambda name: (-abs(self._gain(name)), name))
        report.nodes = {n: [self._before[n], self._after[n]] for n in ranked if self._gain(n)}
        return report

    def _gain(self, node: str) -> int:
        return self._after[node] - self._before[node]

    def _add_reasons(self, cycle: int, pod: str, found: Comparison) -> None:
        why = {each[:3]: each.text for each in differences(found, SIDES)}
        for (kind, plugin, reason), text in why.items():
            known = self._reasons.setdefault(
                (kind, plugin, reason),
                ReasonCycles(
                    kind=kind,
                    plugin=plugin,
                    reason=reason,
                    cycles=0,
                    example=f"cycle {cycle}, {pod}{f': {text}' if text else ''}",
                ),
            )
            known.cycles += 1

    def _add_winner(self, cycle: int, pod: str, found: Winner, name_at: NameAt) -> None:
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
