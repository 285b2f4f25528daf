"""Shows people what a replay found."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from cli.shared.screen import Screen
from gateway.whatif.replay_report import Report

MOST_ROWS = 15
"""Reasons that are shown, the most frequent; nodes that gain or lose pods, those that do most."""


def show(report: Report, screen: Screen, *, wide: bool) -> None:
    """Write a report as tables; those that are *wide* leave nothing out."""
    screen.write(_headline(report), "bold")
    screen.write("")
    screen.table(("CYCLES", "SHARE", ""), list(_classes(report)))
    for block in (_reasons, _winners, _nodes):
        lines = block(report, sys.maxsize if wide else MOST_ROWS)
        if lines:
            screen.write("")
            screen.table(lines[0], lines[1:])
    notes = list(_notes(report))
    if notes:
        screen.write("")
    for note in notes:
        screen.sentence(f"Note: {note}")


def _headline(report: Report) -> str:
    seconds = report.end - report.begin
    begin = datetime.fromtimestamp(report.begin, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f"{report.cycles:,} cycles of {seconds:,.0f} s from {begin} in {report.segments} "
        f"segment{'' if report.segments == 1 else 's'}, replayed with policy {report.policy}"
    )


def _classes(report: Report) -> Iterator[Sequence[str]]:
    changes = report.changes
    exact = "exact but for annotations, which were left out" if report.redacted else "exact"
    for count, what in (
        (report.unchanged, "as before"),
        (changes.verdicts, f"verdicts changed ({exact})"),
        (changes.rankings, f"own rankings changed ({exact})"),
        (changes.winners_exact, f"winners changed ({exact}: Moorage decided alone)"),
        (changes.winners_likely, "winners changed (likely: kube-scheduler adds its own scores)"),
        (report.not_reproducible, "not reproducible with the recorded policy"),
    ):
        if what.startswith("not") and not report.checked:
            continue
        share = count / report.cycles if report.cycles else 0.0
        yield f"{count:,}", f"{share:.1%}", what


def _reasons(report: Report, most: int) -> list[Sequence[str]]:
    if not report.reasons:
        return []
    rows: list[Sequence[str]] = [("CYCLES", "DIFFERS IN", "PLUGIN", "REASON", "EXAMPLE")]
    rows += [
        (f"{each.cycles:,}", each.kind, each.plugin or "-", each.reason, each.example)
        for each in report.reasons[:most]
    ]
    if len(report.reasons) > most:
        rows.append((f"and {len(report.reasons) - most} more", "", "", "", ""))
    return rows


def _winners(report: Report, _: int) -> list[Sequence[str]]:
    if not report.winners:
        return []
    rows: list[Sequence[str]] = [("WINNERS, FOR EXAMPLE", "POD", "BEFORE", "AFTER", "")]
    for each in report.winners:
        before, after = each.before or "no node", each.after or "no node"
        rows.append((f"cycle {each.cycle}", each.pod, before, after, each.certainty))
    return rows


def _nodes(report: Report, most: int) -> list[Sequence[str]]:
    if not report.nodes:
        return []
    shown = list(report.nodes.items())[:most]
    rows: list[Sequence[str]] = [("PODS BY NODE", "BEFORE", "AFTER", "CHANGE")]
    for name, (before, after) in shown:
        rows.append((name or "no node", f"{before:,}", f"{after:,}", f"{after - before:+,}"))
    if len(report.nodes) > len(shown):
        rows.append((f"and {len(report.nodes) - len(shown)} more", "", "", ""))
    return rows


def _notes(report: Report) -> Iterator[str]:
    yield from report.notes
    if report.redacted and report.is_changed:
        yield (
            "annotations were left out of this journal (--journal-annotations of the gateway keeps "
            "some): what plugins make of them here is not what they made of them live"
        )
    if report.not_reproducible:
        by_plugin = ", ".join(f"{name} in {count}" for name, count in sorted(report.blamed.items()))
        yield (
            f"{report.not_reproducible} recorded answers do not come again with the same policy "
            f"and code{f' ({by_plugin})' if by_plugin else ''}: the plugin looks at what is not in "
            "the journal, such as a clock, measurements, or annotations that were left out "
            "(--journal-annotations of the gateway)"
        )
    for error, count in report.failures.items():
        yield f"{count} cycles fail now: {error}"
    for cause, count in report.not_replayed.items():
        yield f"{count} cycles were not replayed: {cause}"
    if report.dropped:
        causes = ", ".join(f"{cause} {count}" for cause, count in sorted(report.dropped.items()))
        yield f"the gateway dropped records: {causes}"
