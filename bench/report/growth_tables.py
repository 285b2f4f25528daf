"""The tables of clusters of several sizes, and of several scorers."""

from collections.abc import Iterator
from itertools import groupby

from rich.table import Table

from bench.report.cells import pair, titled
from bench.results import GrowthResult, ReplicasResult, Results


def growth_tables(results: Results) -> Iterator[Table]:
    """Build the tables of time and of memory by number of nodes."""
    if results.growth:
        yield _times(results.growth)
        yield _memory(results.growth)


def replicas_tables(results: Results) -> Iterator[Table]:
    """Build the table of scorers that share the nodes of a cycle."""
    if results.replicas:
        yield _replicas(results.replicas)


def _times(results: list[GrowthResult]) -> Table:
    caption = "filter + prioritize of all nodes until answered: milliseconds, p50 / p99 (CPU)"
    contenders = [one.contender for one in results[0].edge]
    columns = ("ready after", "bytes/cycle", *contenders)
    table = titled("Growth, 30 pods on each node", caption, *columns)
    for size in results:
        of = {one.contender: f"{pair(one.answered)} ({one.processor:.1f})" for one in size.edge}
        cells = [of.get(contender, "-") for contender in contenders]
        ready = f"{size.ready_seconds:.1f} s"
        table.add_row(f"{size.nodes:,} nodes", ready, f"{size.cycle_bytes:,.0f}", *cells)
    return table


def _memory(results: list[GrowthResult]) -> Table:
    table = titled("Memory by cluster size", "MiB, RSS / PSS", *results[0].memory)
    for size in results:
        cells = [f"{memory.rss:.0f} / {memory.pss:.0f}" for memory in size.memory.values()]
        table.add_row(f"{size.nodes:,} nodes, {size.pods:,} pods", *cells)
    return table


def _replicas(results: list[ReplicasResult]) -> Table:
    cases = [
        (case, list(group))
        for case, group in groupby(results, lambda one: (one.nodes, one.microseconds))
    ]
    table = titled(
        "One score plugin in several scorers, in the form for one node",
        "filter + prioritize until answered: milliseconds, p50 / p99 (ratio of p50 to 1 scorer)",
        *(one.scorers for one in cases[0][1]),
    )
    for (nodes, microseconds), of_case in cases:
        cells = (f"{pair(one.answered)} ({one.ratio:.2f})" for one in of_case)
        table.add_row(f"{nodes:,} names, {microseconds:g} us for each", *cells)
    return table
