"""Prints what a run found, and writes it down."""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.clifftables import cliff_tables
from bench.figures import Figure
from bench.results import (
    BindResult,
    EdgeResult,
    GrowthResult,
    ReplicasResult,
    Results,
    SchedulingResult,
    Verdict,
)

OUT = Path(__file__).with_name("out")
LATEST = OUT / "latest.json"

WORDS = {True: "[green]kept[/]", False: "[bold red]MISSED[/]", None: "[yellow]not measured[/]"}


def show(results: Results, console: Console) -> None:
    """Print all tables."""
    for table in tables(results):
        console.print(table)
    for note in results.notes:
        console.print(note)


def tables(results: Results) -> Iterable[Table]:
    """Build the tables of what was measured."""
    for (question, pause), group in groupby(results.edge, lambda r: (r.question, r.pause)):
        yield _edge_table(question, pause, list(group))
    if results.scheduling:
        yield _scheduling_table(results.scheduling, results.pause_ms)
    if results.binds:
        yield _bind_table(results.binds)
    if results.growth:
        yield _growth_table(results.growth)
        yield _memory_table(results.growth)
    if results.cliffs:
        yield from cliff_tables(results.cliffs)
    if results.replicas:
        yield _replicas_table(results.replicas)
    if results.verdicts:
        yield _verdict_table(results.verdicts)


def write(results: Results, file: Path = LATEST) -> None:
    """Write everything as JSON."""
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))


def read(file: Path = LATEST) -> Results:
    """Read what `write` wrote."""
    return msgspec.json.decode(file.read_bytes(), type=Results)


def _edge_table(question: str, pause: float, results: list[EdgeResult]) -> Table:
    feasible = results[0].feasible
    title = f"{question}, filter then prioritize"
    title += f" after {pause:g} ms" if pause else " at once"
    caption = (
        f"milliseconds, p50 / p99; {results[0].both.count} rounds; ratio of p50 (until answered)"
    )
    table = _table(title, caption)
    for column in ("filter", "prioritize", "both", "until answered", "ratio", "CPU"):
        table.add_column(column, justify="right")
    for one in results:
        name = one.contender + ("" if one.feasible == feasible else f" ({one.feasible:.0f} fit)")
        figures = map(_pair, (one.filter, one.prioritize, one.both, one.answered))
        ratio = f"{one.ratio:.2f} ({one.ratio_answered:.2f})"
        table.add_row(name, *figures, ratio, f"{one.processor:.2f}")
    return table


def _scheduling_table(results: list[SchedulingResult], pause: Figure | None) -> Table:
    caption = f"kube-scheduler pauses {_pair(pause)} ms before prioritize" if pause else None
    table = _table("Pods/s through a real kube-scheduler, 5,000 nodes", caption)
    for column in ("pods/s", "runs", "ratio"):
        table.add_column(column, justify="right")
    for one in results:
        each = ", ".join(f"{rate:.0f}" for rate in one.each)
        name = f"{one.contender}, sampling {one.sampling}"
        table.add_row(name, f"{one.pods_per_second:.0f}", each, f"{one.ratio:.2f}")
    return table


def _bind_table(results: list[BindResult]) -> Table:
    table = _table("Binds on a real API server", "milliseconds, p50 / p99")
    for column in ("in flight", "latency", "binds/s", "failures"):
        table.add_column(column, justify="right")
    for one in results:
        cells = (_pair(one.latency), f"{one.binds_per_second:.0f}", str(one.failures))
        table.add_row(one.contender, str(one.in_flight), *cells)
    return table


def _growth_table(results: list[GrowthResult]) -> Table:
    caption = "filter + prioritize of all nodes until answered: milliseconds, p50 / p99 (CPU)"
    table = _table("Growth, 30 pods on each node", caption)
    contenders = [one.contender for one in results[0].edge]
    for column in ("ready after", "bytes/cycle", *contenders):
        table.add_column(column, justify="right")
    for size in results:
        of = {one.contender: f"{_pair(one.answered)} ({one.processor:.1f})" for one in size.edge}
        cells = [of.get(contender, "-") for contender in contenders]
        ready = f"{size.ready_seconds:.1f} s"
        table.add_row(f"{size.nodes:,} nodes", ready, f"{size.cycle_bytes:,.0f}", *cells)
    return table


def _memory_table(results: list[GrowthResult]) -> Table:
    table = _table("Memory by cluster size", "MiB, RSS / PSS")
    for name in results[0].memory:
        table.add_column(name, justify="right")
    for size in results:
        cells = [f"{memory.rss:.0f} / {memory.pss:.0f}" for memory in size.memory.values()]
        table.add_row(f"{size.nodes:,} nodes, {size.pods:,} pods", *cells)
    return table


def _replicas_table(results: list[ReplicasResult]) -> Table:
    caption = (
        "filter + prioritize until answered: milliseconds, p50 / p99 (ratio of p50 to 1 scorer)"
    )
    table = _table("One score plugin in several scorers, in the form for one node", caption)
    cases = groupby(results, lambda one: (one.nodes, one.microseconds))
    for index, ((nodes, microseconds), group) in enumerate(cases):
        of_case = list(group)
        if not index:
            for one in of_case:
                table.add_column(one.scorers, justify="right")
        cells = (f"{_pair(one.answered)} ({one.ratio:.2f})" for one in of_case)
        table.add_row(f"{nodes:,} names, {microseconds:g} us for each", *cells)
    return table


def _table(title: str, caption: str | None) -> Table:
    table = Table(title=title, caption=caption)
    table.add_column("")
    return table


def _pair(figure: Figure) -> str:
    return f"{figure.p50:.2f} / {figure.p99:.2f}"


def _verdict_table(judged: list[Verdict]) -> Table:
    table = Table(
        "budget", "allowed", "measured", "", title="Budgets; x is Moorage to Go that does nothing"
    )
    for one in judged:
        measured = "" if one.measured is None else f"{one.measured:.2f} {one.unit}"
        table.add_row(one.work, one.bound, measured, WORDS[one.kept])
    return table
