"""Prints what a run found, and writes it down."""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.figures import Figure
from bench.results import EdgeResult, Results, Verdict

OUT = Path(__file__).with_name("out")
LATEST = OUT / "latest.json"

WORDS = {True: "[green]kept[/]", False: "[bold red]MISSED[/]", None: "[yellow]not measured[/]"}


def show(results: Results, console: Console) -> None:
    """Print all tables."""
    for table in tables(results):
        console.print(table)
    for note in results.notes:
        console.print(note)


def tables(results: Results) -> Iterable[Table]:
    """Build the tables of what was measured."""
    for (question, pause), group in groupby(results.edge, lambda r: (r.question, r.pause)):
        yield _edge_table(question, pause, list(group))
    if results.verdicts:
        yield _verdict_table(results.verdicts)


def write(results: Results, file: Path = LATEST) -> None:
    """Write everything as JSON."""
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))


def read(file: Path = LATEST) -> Results:
    """Read what `write` wrote."""
    return msgspec.json.decode(file.read_bytes(), type=Results)


def _edge_table(question: str, pause: float, results: list[EdgeResult]) -> Table:
    feasible = results[0].feasible
    title = f"{question}, filter then prioritize"
    title += f" after {pause:g} ms" if pause else " at once"
    caption = (
        f"milliseconds, p50 / p99; {results[0].both.count} rounds; ratio of p50 (until answered)"
    )
    table = Table(title=title, caption=caption)
    for column in ("", "filter", "prioritize", "both", "until answered", "ratio", "CPU"):
        table.add_column(column, justify="right" if column else "left")
    for one in results:
        name = one.contender + ("" if one.feasible == feasible else f" ({one.feasible:.0f} fit)")
        figures = map(_pair, (one.filter, one.prioritize, one.both, one.answered))
        ratio = f"{one.ratio:.2f} ({one.ratio_answered:.2f})"
        table.add_row(name, *figures, ratio, f"{one.processor:.2f}")
    return table


def _pair(figure: Figure) -> str:
    return f"{figure.p50:.2f} / {figure.p99:.2f}"


def _verdict_table(judged: list[Verdict]) -> Table:
    table = Table(
        "budget", "allowed", "measured", "", title="Budgets: Moorage to Go that does nothing"
    )
    for one in judged:
        measured = "" if one.measured is None else f"{one.measured:.2f} x"
        table.add_row(one.work, one.bound, measured, WORDS[one.kept])
    return table
