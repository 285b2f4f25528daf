"""A run for tests, made up, in which every budget was kept."""

from bench import cluster, cost, edge, growth
from bench.cluster import CASES, SERIES, Runs, Series
from bench.edge import (
    EMPTY_PROFILE,
    GO_PLUGINS,
    MAIN,
    NUMBERED,
    PER_NODE,
    REFERENCE,
    Asked,
    Question,
)
from bench.processes.counted import Counts, Work
from bench.processes.load import Call, Round
from bench.report import PEERS, Figure, Machine, Results, Table

MILLISECOND = 1_000_000

RATES = {case.name: 100.0 for case in CASES} | {
    cluster.MOORAGE: 90.0,
    cluster.MOORAGE_BINDS: 90.0,
    cluster.MOORAGE_UNLIKE: 75.0,
}
"""Pods a second of each case."""

SPENT = {
    cluster.WITHOUT: {},
    cluster.GO: {"go": 1.0},
    cluster.GO_BINDS: {"go": 1.0},
    cluster.MOORAGE: {"gateway": 1.25, "filter": 0.75},
    cluster.MOORAGE_UNLIKE: {"gateway": 4.0},
    cluster.MOORAGE_BINDS: {"gateway": 3.5},
}
"""Milliseconds a pod of each process of each case."""

RATIOS = {
    "500 names": {NUMBERED: 0.8, MAIN: 1.3, PER_NODE: 1.5},
    "5000 names": {NUMBERED: 0.5, MAIN: 0.7, PER_NODE: 9.0},
    "5000 whole nodes": {MAIN: 0.28},
}
"""The ratio of each contender at each question."""


def a_round(contender: str, milliseconds: float, failure: str = "") -> Round:
    """A round whose filter takes so long, and whose prioritize takes twice that."""
    took = int(milliseconds * MILLISECOND)
    first, second = (Call(answered=n * took, sent=1000, received=500) for n in (1, 2))
    return Round(contender, first, second, feasible=9, processor=took, failure=failure)


def asked(contender: str, ratio: float) -> Asked:
    figure = Figure(p50=ratio, p99=2 * ratio, count=100)
    return Asked(contender=contender, answered=figure, ratio=ratio, processor=1.5, feasible=490)


def add_edge(results: Results, ratios: dict[str, dict[str, float]]) -> None:
    for question, found in ratios.items():
        nodes = int(question.split()[0])
        whole = question.endswith("whole nodes")
        about = Question(nodes=nodes, contenders=(), rounds=1, seconds=1, whole=whole)
        fixed = ((REFERENCE, 1.0), (GO_PLUGINS, 1.2), (EMPTY_PROFILE, 0.1))
        edge.report(results, about, [asked(*each) for each in (*fixed, *found.items())])


def add_cluster(
    results: Results,
    series: Series,
    rates: dict[str, float] = RATES,
    spent: dict[str, dict[str, float]] = SPENT,
) -> None:
    runs = Runs(series)
    for case in CASES:
        rate = rates[case.name]
        runs.rates[case.name] = [0.9 * rate, 1.1 * rate]
        runs.times[case.name] = [spent[case.name]] * 2
    cluster.report(results, runs, [5e6, 5e6])


def size(nodes: int, milliseconds: float, mebibytes: float = 330) -> growth.Size:
    return growth.Size(
        nodes=nodes,
        ready=nodes / 1000,
        sent=5000,
        asked={name: asked(name, each) for name, each in ((REFERENCE, 1), (MAIN, milliseconds))},
        memory={"gateway": (400, mebibytes), "filter": (100, 80)},
    )


SIZES = (size(1000, 10), size(5000, 50), size(10_000, 100))


def empty() -> Results:
    machine = Machine(
        date="2026-11-21 12:00 UTC",
        processor="a processor",
        cores=2,
        memory_gib=16,
        python="3.11",
        kernel="6",
        commit="abc",
        load=(0.1, 0.1, 0.1),
    )
    return Results(machine=machine, quick=False, tables=[], verdicts=[], notes=[])


def results() -> Results:
    """Return a run in which every budget was kept."""
    made = empty()
    counts = {
        "gateway": Counts(
            sent=1, classes={"A"}, modules={"gateway.edge.edge": Work(calls=70, instructions=1234)}
        ),
        "binder": Counts(modules={"services.binder.session": Work(calls=36)}),
    }
    cost.report(made, {cost.BIND: counts})
    add_edge(made, RATIOS)
    for series in SERIES:
        add_cluster(made, series)
    growth.report(made, SIZES)
    row = ("moorage", "2.00")
    table = Table(part=PEERS, title="The peers", caption="", head=("", "seconds"), rows=[row])
    made.tables.append(table)
    return made
