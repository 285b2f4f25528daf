"""All tables of a run by part, and their output on a terminal."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from bench.parts import CLIFFS, CLUSTER, EDGE, FULL_SAMPLE, GROWTH, PARTS, RECORDS, REPLICAS
from bench.report.cliff_tables import cliff_tables
from bench.report.cluster_tables import default_sample, full_sample
from bench.report.edge_tables import edge_tables, records_tables
from bench.report.growth_tables import growth_tables, replicas_tables
from bench.results import Results, Verdict

WORDS = {True: "[green]kept[/]", False: "[bold red]MISSED[/]", None: "[yellow]not measured[/]"}

BY_PART: Mapping[str, Callable[[Results], Iterator[Table]]] = {
    EDGE: edge_tables,
    CLUSTER: default_sample,
    FULL_SAMPLE: full_sample,
    GROWTH: growth_tables,
    CLIFFS: cliff_tables,
    REPLICAS: replicas_tables,
    RECORDS: records_tables,
}


def show(results: Results, console: Console) -> None:
    """Print all tables."""
    for part in PARTS:
        for table in BY_PART[part](results):
            console.print(table)
    if results.verdicts:
        console.print(_verdicts(results.verdicts, "Budgets"))
    for note in results.notes:
        console.print(note)


def of_part(results: Results, part: str) -> list[Table]:
    """Build the tables of a part, its budgets last; none if it was not measured."""
    tables = [*BY_PART[part](results)]
    verdicts = [one for one in results.verdicts if one.part == part]
    return [*tables, _verdicts(verdicts, f"Budgets, {part}")] if tables and verdicts else tables


def _verdicts(judged: Sequence[Verdict], title: str) -> Table:
    caption = "x is Moorage to Go that does nothing"
    table = Table("budget", "allowed", "measured", "", title=title, caption=caption)
    for one in judged:
        measured = "" if one.measured is None else f"{one.measured:.2f} {one.unit}"
        table.add_row(one.work, one.bound, measured, WORDS[one.kept])
    return table
