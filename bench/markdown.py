"""Writes the tables of a run into docs/performance.md: python -m bench.markdown [FILE].

FILE is what `make bench` wrote, by default bench/out/latest.json.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table
from rich.text import Text

from bench import report
from bench.results import Machine, Results

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- bench -->", "<!-- end of bench -->"


def main(file: Path) -> None:
    """Replace the tables of the page."""
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    text = "\n".join(lines(report.read(file)))
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")


def lines(results: Results) -> Iterator[str]:
    """Yield everything as Markdown."""
    yield _where(results.machine)
    for note in results.notes:
        yield f"\n{note}"
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
