"""Writes the tables and plots of a run into docs/performance.md: python -m bench.markdown [FILE].

FILE is what `make bench` wrote, by default bench/out/latest.json.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from bench import plots, report
from bench.results import Machine, Results

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- bench -->", "<!-- end of bench -->"


def main(file: Path, page: Path = PAGE) -> None:
    """Replace the tables of the page, and the plots in the folder of its name beside it."""
    results, folder = report.read(file), page.with_suffix("")
    for old in folder.glob("*.svg"):
        old.unlink()
    drawn = plots.draw_all(results, folder)
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    text = "\n".join(lines(results, drawn))
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def lines(results: Results, drawn: Sequence[Path]) -> Iterator[str]:
    """Yield everything as Markdown; plots are in a folder beside the page."""
    yield _where(results.machine)
    for note in results.notes:
        yield f"\n{note}"
    for plot in drawn:
        yield f"\n![{plot.stem.replace('-', ' ')}]({plot.parent.name}/{plot.name})"
    for table in report.tables(results):
        yield f"\n### {table.title}\n"
        yield from _rows(table)
        if table.caption:
            yield f"\n{table.caption}"
    yield ""


def _where(machine: Machine) -> str:
    load = ", ".join(f"{value:.1f}" for value in machine.load)
    return (
        f"{machine.date}, {machine.cores} cores ({machine.processor}), {machine.memory_gib:g} GiB, "
        f"Linux {machine.kernel}, Python {machine.python}, commit {machine.commit}; "
        f"load averages before it: {load}."
    )


def _rows(table: Table) -> Iterator[str]:
    heads = [str(column.header) for column in table.columns]
    yield _row(heads)
    yield _row(["---", *("---:" for _ in heads[1:])])
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        yield _row([Text.from_markup(str(cell)).plain for cell in cells])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(re.sub(r"([|<])", r"\\\1", cell) for cell in cells) + " |"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else report.LATEST)
