"""Writes the tables and plots of a run into docs/explanation/performance.md and README.md.

Both have a section for each part between two comments. Sections of parts that the run did not
measure stay as they are, and each names the run it is from.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table
from rich.text import Text

from bench.parts import PARTS
from bench.report import plots, summary, tables
from bench.report.files import read
from bench.results import Machine, Results

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "performance.md"
README = ROOT / "README.md"


class PageError(Exception):
    """The pages cannot be written; the message names the cause."""


def main(file: Path, page: Path = PAGE, readme: Path = README) -> list[str]:
    """Replace the sections of what was measured, and their plots; return the parts.

    Raises:
        PageError: The run was a quick one, or the page has no section for a part.
    """
    results, folder = read(file), page.with_suffix("")
    if results.quick:
        raise PageError(f"{file}: a quick run is not for the pages; measure without --quick")
    measured = [part for part in PARTS if tables.of_part(results, part)]
    for part in measured:
        drawn = plots.draw(results, part, folder)
        _replace(page, part, section(results, part, drawn))
        if rows := summary.lines(results, part):
            _replace(readme, part, rows)
    _remove_unused(folder, page.read_text() + readme.read_text())
    return measured


def section(results: Results, part: str, drawn: list[Path]) -> list[str]:
    """Return a part as Markdown; plots are in a folder beside the page."""
    return [*_section(results, part, drawn)]


def _section(results: Results, part: str, drawn: list[Path]) -> Iterator[str]:
    yield _where(results.machine)
    for note in results.notes:
        yield f"\n{note}"
    for plot in drawn:
        yield f"\n![{plot.stem.replace('-', ' ')}]({plot.parent.name}/{plot.name})"
    for table in tables.of_part(results, part):
        yield f"\n#### {table.title}\n"
        yield from _rows(table)
        if table.caption:
            yield f"\n{table.caption}"


def _replace(page: Path, part: str, lines: list[str]) -> None:
    begin, end = f"<!-- bench: {part} -->", f"<!-- end of bench: {part} -->"
    text = page.read_text()
    if begin not in text or end not in text:
        raise PageError(f"{page}: no section for the part {part}; add {begin} and {end}")
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    body = "\n".join(lines)
    page.write_text(f"{before}{begin}\n\n{body}\n\n{end}{after}")


def _remove_unused(folder: Path, text: str) -> None:
    for plot in folder.glob("*.svg"):
        if f"{folder.name}/{plot.name}" not in text:
            plot.unlink()


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
