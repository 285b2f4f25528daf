"""What a run found: tables and budgets, on a terminal, as JSON, and in the documentation.

python -m bench.report [FILE] writes a run, by default the newest, into
docs/reference/benchmarks.md. It has a section for each part between two comments. Sections of parts
that the run did not measure stay as they are, and each names the run that it is from.
"""

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
import numpy as np
import rich.table
from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
LATEST = ROOT / "bench" / "out" / "latest.json"
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"

PARTS = ("cost", "edge", "cluster", "growth", "peers")
COST, EDGE, CLUSTER, GROWTH, PEERS = PARTS
"""The parts of the bench in their order: each can be measured, printed and published alone.

PEERS is measured only where it is named.
"""


class Figure(msgspec.Struct, frozen=True):
    """A sample in brief; the unit is the measurements'."""

    p50: float
    p99: float
    count: int

    def __str__(self) -> str:
        """The median and the 99th percentile."""
        return f"{self.p50:.2f} / {self.p99:.2f}"


def figure(values: Iterable[float]) -> Figure:
    """Sum up measurements.

    Raises:
        ValueError: There is none.
    """
    sample = list(values)
    if not sample:
        raise ValueError("nothing was measured")
    p50, p99 = map(float, np.quantile(sample, (0.5, 0.99)))
    return Figure(p50=p50, p99=p99, count=len(sample))


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table of a part; the first cell of each row is the row's name."""

    part: str
    title: str
    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    published: bool = True
    """Whether it goes into the page, and not to the terminal alone."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A budget and what was measured, in `unit`: "x" is the ratio to the Go extender of the run."""

    part: str
    work: str
    limit: float
    measured: float
    least: bool = False
    """Whether the limit is the least that is allowed, and not the most."""
    unit: str = "x"

    @property
    def kept(self) -> bool:
        """Whether the budget was kept."""
        return self.measured >= self.limit if self.least else self.measured <= self.limit


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where and when it was measured.

    Attributes:
        load: The load averages before the run: more than a few tenths means a busy machine.
    """

    date: str
    processor: str
    cores: int
    memory_gib: float
    python: str
    kernel: str
    commit: str
    load: tuple[float, float, float]

    def __str__(self) -> str:
        """The same as a sentence."""
        load = ", ".join(f"{value:.1f}" for value in self.load)
        return (
            f"{self.date}, {self.cores} cores ({self.processor}), {self.memory_gib:g} GiB, "
            f"Linux {self.kernel}, Python {self.python}, commit {self.commit}; "
            f"load averages before it: {load}."
        )


def machine() -> Machine:
    """Describe this machine, now."""
    processors = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)", processors, re.M)
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return Machine(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        processor=model.group(1) if model else platform.processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        python=platform.python_version(),
        kernel=platform.release(),
        commit=commit.strip() or "unknown",
        load=os.getloadavg(),
    )


class Results(msgspec.Struct, kw_only=True):
    """All of a run; each part adds to it."""

    machine: Machine
    quick: bool
    tables: list[Table] = []
    verdicts: list[Verdict] = []
    notes: list[str] = []

    def of_part(self, part: str) -> list[Table]:
        """Return the tables of a part, its budgets last; none if it was not measured.

        Those of COST are in its own tables, unless they are missed.
        """
        tables = [table for table in self.tables if table.part == part]
        judged = [
            verdict
            for verdict in self.verdicts
            if verdict.part == part and not (part == COST and verdict.kept)
        ]
        return [*tables, _budgets(part, judged)] if judged else tables


def _budgets(part: str, judged: Iterable[Verdict]) -> Table:
    return Table(
        part=part,
        title=f"Budgets, {part}",
        caption="x is Moorage to Go that does nothing",
        head=("budget", "allowed", "measured", ""),
        rows=[
            (
                one.work,
                f"at {'least' if one.least else 'most'} {one.limit:g} {one.unit}",
                f"{one.measured:.2f} {one.unit}",
                "kept" if one.kept else "MISSED",
            )
            for one in judged
        ],
    )


class PageError(Exception):
    """The page cannot be written; the message names the cause."""


def write(results: Results, file: Path = LATEST) -> None:
    """Write everything as JSON."""
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))


def read(file: Path = LATEST) -> Results:
    """Read what `write` wrote."""
    return msgspec.json.decode(file.read_bytes(), type=Results)


def show(results: Results, console: Console) -> None:
    """Print all tables."""
    for table in (each for part in PARTS for each in results.of_part(part)):
        printed = rich.table.Table(title=table.title, caption=table.caption)
        for index, name in enumerate(table.head):
            printed.add_column(name, justify="right" if index else "left")
        for row in table.rows:
            printed.add_row(*row)
        console.print(printed)
    for note in results.notes:
        console.print(note)


def publish(file: Path, page: Path = PAGE) -> list[str]:
    """Replace the sections of what was measured; return the parts.

    Raises:
        PageError: The run was a quick one, or the page has no section for a part.
    """
    results = read(file)
    if results.quick:
        raise PageError(f"{file}: a quick run is not for the pages; measure without --quick")
    measured = [part for part in PARTS if results.of_part(part)]
    for part in measured:
        begin, end = f"<!-- bench: {part} -->", f"<!-- end of bench: {part} -->"
        text = page.read_text()
        if begin not in text or end not in text:
            raise PageError(f"{page}: no section for the part {part}; add {begin} and {end}")
        before, _, rest = text.partition(begin)
        body = "\n".join(_section(results, part))
        page.write_text(f"{before}{begin}\n\n{body}\n\n{end}{rest.partition(end)[2]}")
    return measured


def _section(results: Results, part: str) -> Iterator[str]:
    yield str(results.machine)
    for note in results.notes:
        yield f"\n{note}"
    for table in results.of_part(part):
        if not table.published:
            continue
        yield f"\n#### {table.title}\n"
        yield _row(table.head)
        yield f"|---|{'---:|' * len(table.head[1:])}"
        yield from map(_row, table.rows)
        if table.caption:
            yield f"\n{table.caption}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(re.sub(r"([|<])", r"\\\1", cell) for cell in cells) + " |"


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path), default=LATEST)
def main(file: Path) -> None:
    """Replace the tables of the parts that FILE has; without it, of the newest run."""
    try:
        parts = publish(file)
    except PageError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Written from {file}: {', '.join(parts)}")


if __name__ == "__main__":
    main()
