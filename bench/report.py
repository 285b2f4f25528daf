"""Tables of what a run found: on a terminal, and in the documentation.

python -m bench.report [FILE] writes a run, by default the newest, into
docs/reference/benchmarks.md. It has a section for each part between two comments. Sections of parts
that the run did not measure stay as they are, and each names the run that it is from.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.results import (
    CLUSTER,
    COST,
    EDGE,
    GROUPS,
    GROWTH,
    PARTS,
    PEERS,
    EdgeResult,
    Figure,
    Machine,
    Results,
    SchedulingResult,
    Verdict,
)

ROOT = Path(__file__).resolve().parents[1]
LATEST = ROOT / "bench" / "out" / "latest.json"
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"

WORDS = {True: "[green]kept[/]", False: "[bold red]MISSED[/]", None: "[yellow]not measured[/]"}


class PageError(Exception):
    """The pages cannot be written; the message names the cause."""


def write(results: Results, file: Path = LATEST) -> None:
    """Write everything as JSON."""
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))


def read(file: Path = LATEST) -> Results:
    """Read what `write` wrote."""
    return msgspec.json.decode(file.read_bytes(), type=Results)


def show(results: Results, console: Console) -> None:
    """Print all tables."""
    for part in PARTS:
        for table in TABLES[part](results):
            console.print(table)
    if judged := [one for one in results.verdicts if one.kept is not None]:
        console.print(_verdicts(judged, "Budgets"))
    for note in results.notes:
        console.print(note)


def of_part(results: Results, part: str) -> list[Table]:
    """Build the tables of a part, its budgets last; none if it was not measured."""
    tables = [*TABLES[part](results)]
    verdicts = [one for one in results.verdicts if one.part == part]
    return [*tables, _verdicts(verdicts, f"Budgets, {part}")] if tables and verdicts else tables


def publish(file: Path, page: Path = PAGE) -> list[str]:
    """Replace the sections of what was measured; return the parts.

    Raises:
        PageError: The run was a quick one, or the page has no section for a part.
    """
    results = read(file)
    if results.quick:
        raise PageError(f"{file}: a quick run is not for the pages; measure without --quick")
    measured = [part for part in PARTS if of_part(results, part)]
    for part in measured:
        _replace(page, part, [*_section(results, part)])
    return measured


def _section(results: Results, part: str) -> Iterator[str]:
    yield _where(results.machine)
    for note in results.notes:
        yield f"\n{note}"
    for table in of_part(results, part):
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


def _titled(title: str, caption: str | None, *columns: str) -> Table:
    """Return a table whose first column has the names of the rows."""
    table = Table(title=title, caption=caption)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _pair(figure: Figure) -> str:
    """Return the median and the 99th percentile."""
    return f"{figure.p50:.2f} / {figure.p99:.2f}"


def _verdicts(judged: list[Verdict], title: str) -> Table:
    caption = "x is Moorage to Go that does nothing"
    table = Table("budget", "allowed", "measured", "", title=title, caption=caption)
    for one in judged:
        measured = "" if one.measured is None else f"{one.measured:.2f} {one.unit}"
        table.add_row(one.work, one.bound, measured, WORDS[one.kept])
    return table


def _cost(results: Results) -> Iterator[Table]:
    if not results.cost:
        return
    columns = ("our calls", "classes", "modules", "numpy", "steps of coroutines", "messages")
    caption = "counted in all processes of Moorage together; the least of all rounds"
    table = _titled("What one call makes Moorage do", caption, *columns, "our calls by process")
    for one in results.cost:
        counts = (one.calls, one.classes, one.modules, one.numpy, one.awaits, one.sent)
        parts = ", ".join(f"{name} {count}" for name, count in one.calls_by_process.items())
        table.add_row(one.step, *map(str, counts), parts)
    yield table


def _edge(results: Results) -> Iterator[Table]:
    yield from _questions(results.edge)


def _peers(results: Results) -> Iterator[Table]:
    yield from _questions(results.peers)


def _questions(results: Iterable[EdgeResult]) -> Iterator[Table]:
    for (question, pause), group in groupby(results, lambda r: (r.question, r.pause)):
        yield _question(question, pause, list(group))


def _question(question: str, pause: float, results: list[EdgeResult]) -> Table:
    feasible = results[0].feasible
    title = f"{question}, filter then prioritize"
    title += f" after {pause:g} ms" if pause else " at once"
    caption = f"milliseconds until both are answered, p50 / p99; {results[0].both.count} rounds"
    table = _titled(title, caption, "answered", "ratio", "CPU")
    for one in results:
        name = one.contender + ("" if one.feasible == feasible else f" ({one.feasible:.0f} fit)")
        figures = f"{one.ratio_answered:.2f}", f"{one.processor:.2f}"
        table.add_row(name, _pair(one.answered), *figures)
    return table


def _cluster(results: Results) -> Iterator[Table]:
    for series, group in groupby(results.scheduling, lambda row: row.series):
        rows = list(group)
        captions = [
            f"pods/s: median of {len(rows[0].each)} runs",
            "CPU: milliseconds of processor time a pod of all processes of the extender (ratio)",
            f"Kubernetes {results.kubernetes}",
        ]
        if pauses := results.pauses.get(series):
            captions.append(f"kube-scheduler takes {_pair(pauses)} ms from filter to prioritize")
        title = f"Pods/s, {series}, {rows[0].nodes:,} nodes"
        columns = ("pods/s", "ratio", "CPU", "of which", "runs")
        table = _titled(title, "; ".join(captions), *columns)
        for row in rows:
            table.add_row(row.contender, *_scheduling(row))
        yield table


def _scheduling(row: SchedulingResult) -> Iterator[str]:
    yield f"{row.pods_per_second:.0f}"
    yield f"{row.ratio:.2f}"
    yield f"{row.processor_total:.2f} ({row.processor_ratio:.1f})" if row.processor else "-"
    of_each = sorted(row.processor.items(), key=lambda item: -item[1])
    yield ", ".join(f"{name} {time:.2f}" for name, time in of_each) if len(of_each) > 1 else ""
    yield ", ".join(f"{rate:.0f}" for rate in row.each)


def _growth(results: Results) -> Iterator[Table]:
    if not results.growth:
        return
    first = results.growth[0]
    caption = "filter + prioritize of all nodes until answered: milliseconds, p50 / p99 (CPU)"
    contenders = [one.contender for one in first.edge]
    columns = ("ready after", "bytes/cycle", *contenders)
    table = _titled("Growth, 30 pods on each node", caption, *columns)
    memory = _titled("Memory by cluster size", "MiB, RSS / PSS", *first.memory)
    for size in results.growth:
        of = {one.contender: f"{_pair(one.answered)} ({one.processor:.1f})" for one in size.edge}
        cells = [of.get(contender, "-") for contender in contenders]
        ready = f"{size.ready_seconds:.1f} s"
        table.add_row(f"{size.nodes:,} nodes", ready, f"{size.cycle_bytes:,.0f}", *cells)
        used = [f"{each.rss:.0f} / {each.pss:.0f}" for each in size.memory.values()]
        memory.add_row(f"{size.nodes:,} nodes, {size.pods:,} pods", *used)
    yield table
    yield memory


def _groups(results: Results) -> Iterator[Table]:
    if not results.groups:
        return
    caption = "seconds from when it is complete until its last pod is bound: median of the runs"
    table = _titled("A pod group of 100", caption, "seconds", "ratio", "filter calls", "runs")
    for row in results.groups:
        calls = "" if row.calls is None else f"{row.calls:,}"
        runs = ", ".join(f"{each:.2f}" for each in row.each)
        name = f"{row.contender}, {row.where}"
        table.add_row(name, f"{row.seconds:.2f}", f"{row.ratio:.2f}", calls, runs)
    yield table


TABLES: Mapping[str, Callable[[Results], Iterator[Table]]] = {
    COST: _cost,
    EDGE: _edge,
    CLUSTER: _cluster,
    GROWTH: _growth,
    GROUPS: _groups,
    PEERS: _peers,
}


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
