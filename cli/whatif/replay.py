"""The command `moorage replay`, and what it shows people."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.shared.failures import clear_failures
from cli.shared.gateway.options import FILE
from cli.shared.output import Form, is_for_programs, output_option, write

if TYPE_CHECKING:
    from gateway.whatif.replay_report import Report

PATH = click.Path(exists=True, path_type=Path)

CHANGED = 1
"""Exit code: something would have been decided otherwise."""

FAILED = 2
"""Exit code: the journal cannot be replayed; also that of wrong options."""

EXAMPLES = 5
"""Pods that would go elsewhere, at most so many are shown."""

MOST_ROWS = 15
"""Reasons that are shown, the most frequent; nodes that gain or lose pods, those that do most."""


@click.command()
@click.argument("journal", type=PATH)
@click.option("--config", type=FILE, help="The policy to try. Without it: the recorded one.")
@click.option(
    "--plugin", "plugins", type=PATH, multiple=True, help="A Python file or folder with plugins."
)
@output_option()
def replay(journal: Path, config: Path | None, plugins: tuple[Path, ...], output: Form) -> None:
    """Decide the cycles of a gateway's JOURNAL again, and show what changes.

    JOURNAL is the folder of --journal, or one of its files. Another policy (--config), or other
    code of a plugin (--plugin), is compared with what was recorded. With neither, nothing should
    change.

    The exit code is 0 if nothing changes, 1 if something does, 2 if the journal cannot be replayed.
    """
    with clear_failures(code=FAILED):
        from cli.config.policies import load_registries, resolve_file, unused_plugins
        from cli.shared.screen import Screen
        from cli.whatif.engines import filtered, scored
        from gateway.whatif.replay import Engines, Replay

        registries, notes = load_registries(plugins), []
        policy = resolve_file(config, registries) if config else None
        if policy is not None:
            unused = unused_plugins(policy, registries)
            notes = [*policy.warnings, *(f"plugin {each}" for each in unused)]
        engines = Engines(registries=registries, filter=filtered, score=scored)
        work, screen = Replay(journal, engines, examples=EXAMPLES), Screen()
        with ExitStack() as stack:
            progress: Callable[[int], None] = lambda _: None  # noqa: E731
            if not is_for_programs(output):
                progress = stack.enter_context(screen.progress("cycles", work.total))
            report = asyncio.run(work.run(policy, progress))
        report.notes[:0] = notes
        if is_for_programs(output):
            write(report, output)
        else:
            screen.write(_headline(report), "bold")
            for header, rows in _tables(report):
                screen.write("")
                screen.table(header, rows)
            for note in _notes(report):
                screen.sentence(f"Note: {note}")
    sys.exit(CHANGED if report.is_changed or report.not_reproducible else 0)


def _headline(report: "Report") -> str:
    seconds = report.end - report.begin
    begin = datetime.fromtimestamp(report.begin, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f"{report.cycles:,} cycles of {seconds:,.0f} s from {begin} in {report.segments} "
        f"segment{'' if report.segments == 1 else 's'}, replayed with policy {report.policy}"
    )


def _classes(report: "Report") -> Iterator[Sequence[str]]:
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


Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def _tables(report: "Report") -> Iterator[Table]:
    """Yield header and rows of each table, the last of which may say how many more there are."""
    yield ("CYCLES", "SHARE", ""), list(_classes(report))
    reasons = [
        (f"{each.cycles:,}", each.kind, each.plugin or "-", each.reason, each.example)
        for each in report.reasons
    ]
    winners = [
        (
            f"cycle {each.cycle}",
            each.pod,
            each.before or "no node",
            each.after or "no node",
            each.certainty,
        )
        for each in report.winners
    ]
    nodes = [
        (name or "no node", f"{before:,}", f"{after:,}", f"{after - before:+,}")
        for name, (before, after) in report.nodes.items()
    ]
    further: tuple[Table, ...] = (
        (("CYCLES", "DIFFERS IN", "PLUGIN", "REASON", "EXAMPLE"), reasons),
        (("WINNERS, FOR EXAMPLE", "POD", "BEFORE", "AFTER", ""), winners),
        (("PODS BY NODE", "BEFORE", "AFTER", "CHANGE"), nodes),
    )
    for header, rows in further:
        if len(rows) > MOST_ROWS:
            rest = f"and {len(rows) - MOST_ROWS} more: -o json has them"
            yield header, [*rows[:MOST_ROWS], (rest, *[""] * (len(header) - 1))]
        elif rows:
            yield header, rows


def _notes(report: "Report") -> Iterator[str]:
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
