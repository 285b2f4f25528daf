"""The tables of filter and prioritize at the edge."""

from collections.abc import Iterator
from itertools import groupby

from rich.table import Table

from bench.report.cells import pair, titled
from bench.results import EdgeResult, RecordsResult, Results


def edge_tables(results: Results) -> Iterator[Table]:
    """Build a table for each question."""
    for (question, pause), group in groupby(results.edge, lambda r: (r.question, r.pause)):
        yield _table(question, pause, list(group))


def records_tables(results: Results) -> Iterator[Table]:
    """Build the table of cycles with records and without."""
    if results.records:
        yield _records(results.records)


def _records(results: list[RecordsResult]) -> Table:
    caption = "filter + prioritize until answered: milliseconds, p50 / p99; ratios of p50, CPU"
    columns = ("with records", "without", "ratio", "ratio of CPU")
    table = titled("What keeping decisions costs", caption, *columns)
    for one in results:
        figures = (pair(one.answered), pair(one.answered_without))
        ratios = (f"{one.ratio:.3f}", f"{one.processor_ratio:.3f}")
        table.add_row(f"{one.nodes:,} names, {one.pods} pods", *figures, *ratios)
    return table


def _table(question: str, pause: float, results: list[EdgeResult]) -> Table:
    feasible = results[0].feasible
    title = f"{question}, filter then prioritize"
    title += f" after {pause:g} ms" if pause else " at once"
    caption = (
        f"milliseconds, p50 / p99; {results[0].both.count} rounds; ratio of p50 (until answered)"
    )
    columns = ("filter", "prioritize", "both", "until answered", "ratio", "CPU")
    table = titled(title, caption, *columns)
    for one in results:
        name = one.contender + ("" if one.feasible == feasible else f" ({one.feasible:.0f} fit)")
        figures = map(pair, (one.filter, one.prioritize, one.both, one.answered))
        ratio = f"{one.ratio:.2f} ({one.ratio_answered:.2f})"
        table.add_row(name, *figures, ratio, f"{one.processor:.2f}")
    return table
