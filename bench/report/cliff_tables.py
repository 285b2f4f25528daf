"""The tables of cycles while something else happens."""

from collections.abc import Iterator

from rich.table import Table

from bench.report.cells import pair, titled
from bench.results import Cliffs, Results


def cliff_tables(results: Results) -> Iterator[Table]:
    """Build the tables: times, pauses of the garbage collector, memory."""
    if results.cliffs:
        yield _times(results.cliffs)
        yield _pauses(results.cliffs)
        yield _memory(results.cliffs)


def _times(cliffs: Cliffs) -> Table:
    title = f"Cliffs: {cliffs.nodes:,} nodes with {cliffs.pods:,} pods"
    caption = "filter + prioritize until answered: milliseconds, p50 / p99 (p99 more than at rest)"
    rest = cliffs.situations[0]
    columns = [f"{one.question}: {one.contender}" for one in rest.edge]
    table = titled(title, caption, "times", *columns)
    for situation in cliffs.situations:
        cells = []
        for calm, one in zip(rest.edge, situation.edge, strict=True):
            more = one.answered.p99 - calm.answered.p99
            cells.append(pair(one.answered) + ("" if one is calm else f" ({more:+.2f})"))
        table.add_row(situation.situation, f"{situation.events:,}", *cells)
    return table


def _pauses(cliffs: Cliffs) -> Table:
    caption = "the longest at most, in milliseconds, and the share of the time"
    table = titled("Pauses of the garbage collector", caption, *cliffs.situations[0].pauses)
    for situation in cliffs.situations:
        cells = (f"{one.longest:g} ({one.share:.2%})" for one in situation.pauses.values())
        table.add_row(situation.situation, *cells)
    return table


def _memory(cliffs: Cliffs) -> Table:
    title = f"Memory with {cliffs.nodes:,} nodes and {cliffs.pods:,} pods"
    table = titled(title, "MiB, RSS / PSS, after it all", *cliffs.memory)
    table.add_row("", *(f"{one.rss:.0f} / {one.pss:.0f}" for one in cliffs.memory.values()))
    return table
