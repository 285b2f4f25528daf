"""The tables of pods and binds a second on a real control plane."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from rich.table import Table

from bench.cluster.cases import ALL_NODES
from bench.report.cells import pair, titled
from bench.results import BindResult, Results, SchedulingResult


def default_sample(results: Results) -> Iterator[Table]:
    """Build the tables of both kinds of cluster, and of binds."""
    yield from _scheduling(results, [r for r in results.scheduling if r.sampling != ALL_NODES])
    if results.binds:
        yield _binds(results.binds)


def full_sample(results: Results) -> Iterator[Table]:
    """Build the table of the runs whose calls name all nodes."""
    return _scheduling(results, [r for r in results.scheduling if r.sampling == ALL_NODES])


def _scheduling(results: Results, rows: Iterable[SchedulingResult]) -> Iterator[Table]:
    for series, group in groupby(rows, lambda row: row.series):
        of_series = list(group)
        captions = [
            f"pods/s: median of {len(of_series[0].each)} runs",
            "CPU: milliseconds of processor time a pod of all processes of the extender",
            f"Kubernetes {results.kubernetes}",
        ]
        if pauses := results.pauses.get(series):
            captions.append(f"kube-scheduler takes {pair(pauses)} ms from filter to prioritize")
        table = titled(
            f"Pods/s, {series}, {of_series[0].nodes:,} nodes",
            "; ".join(captions),
            *("pods/s", "ratio", "CPU", "of which", "runs"),
        )
        for row in of_series:
            table.add_row(row.contender, *_cells(row))
        yield table


def _cells(row: SchedulingResult) -> Iterator[str]:
    yield f"{row.pods_per_second:.0f}"
    yield f"{row.ratio:.2f}"
    yield f"{row.processor_total:.2f}" if row.processor else "-"
    of_each = sorted(row.processor.items(), key=lambda item: -item[1])
    yield ", ".join(f"{name} {time:.2f}" for name, time in of_each) if len(of_each) > 1 else ""
    yield ", ".join(f"{rate:.0f}" for rate in row.each)


def _binds(results: list[BindResult]) -> Table:
    table = titled(
        "Binds on a real API server",
        "milliseconds, p50 / p99",
        *("in flight", "latency", "binds/s", "failures"),
    )
    for one in results:
        cells = (pair(one.latency), f"{one.binds_per_second:.0f}", str(one.failures))
        table.add_row(one.contender, str(one.in_flight), *cells)
    return table
