"""The tables of `bench.cliffs`; called by `bench.report`."""

from collections.abc import Iterator

from rich.table import Table

from bench.figures import Figure
from bench.results import Cliffs


def cliff_tables(cliffs: Cliffs) -> Iterator[Table]:
    """Build the tables: times, pauses of the garbage collector, memory."""
    yield _times(cliffs)
    yield _pauses(cliffs)
    yield _memory(cliffs)


def _times(cliffs: Cliffs) -> Table:
    title = f"Cliffs: {cliffs.nodes:,} nodes with {cliffs.pods:,} pods"
    caption = "filter + prioritize until answered: milliseconds, p50 / p99 (p99 more than at rest)"
    rest = cliffs.situations[0]
    columns = [f"{one.question}: {one.contender}" for one in rest.edge]
    table = _table(title, caption, "times", *columns)
    for situation in cliffs.situations:
        cells = []
        for calm, one in zip(rest.edge, situation.edge, strict=True):
            more = one.answered.p99 - calm.answered.p99
            cells.append(_pair(one.answered) + ("" if one is calm else f" ({more:+.2f})"))
        table.add_row(situation.situation, f"{situation.events:,}", *cells)
    return table


def _pauses(cliffs: Cliffs) -> Table:
    caption = "the longest at most, in milliseconds, and the share of the time"
    table = _table("Pauses of the garbage collector", caption, *cliffs.situations[0].pauses)
    for situation in cliffs.situations:
        cells = (f"{one.longest:g} ({one.share:.2%})" for one in situation.pauses.values())
        table.add_row(situation.situation, *cells)
    return table


def _memory(cliffs: Cliffs) -> Table:
    title = f"Memory with {cliffs.nodes:,} nodes and {cliffs.pods:,} pods"
    table = _table(title, "MiB, RSS / PSS, after it all", *cliffs.memory)
    table.add_row("", *(f"{one.rss:.0f} / {one.pss:.0f}" for one in cliffs.memory.values()))
    return table


def _table(title: str, caption: str, *columns: str) -> Table:
    table = Table(title=title, caption=caption)
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _pair(figure: Figure) -> str:
    return f"{figure.p50:.2f} / {figure.p99:.2f}"
