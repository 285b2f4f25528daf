"""Results for tests, made up."""

from bench.cluster.cases import CASES, OURS, SERIES, WITHOUT, Series
from bench.edge import EMPTY_PROFILE, GO_PLUGINS, MAIN, NUMBERED, PER_NODE, REFERENCE
from bench.peers.measure import FASTAPI
from bench.processes.load import Call, Round
from bench.results import (
    CostResult,
    EdgeResult,
    Figure,
    GroupResult,
    GrowthResult,
    Machine,
    Memory,
    Results,
    SchedulingResult,
)

MILLISECOND = 1_000_000


def figure(p50: float) -> Figure:
    return Figure(p50=p50, p99=2 * p50, count=100)


def a_round(contender: str, milliseconds: float, failure: str = "") -> Round:
    """A round whose filter takes so long, and whose prioritize takes twice that."""
    took = int(milliseconds * MILLISECOND)
    filtered, prioritized = (
        Call(answered=n * took // 2, decoded=n * took, sent=1000, received=500) for n in (1, 2)
    )
    return Round(
        contender, filtered, prioritized, feasible=9, scored=8, processor=took, failure=failure
    )


def edge_result(question: str, contender: str, ratio: float, pause: float = 0) -> EdgeResult:
    return EdgeResult(
        question=question,
        contender=contender,
        pause=pause,
        filter=figure(1),
        prioritize=figure(2),
        both=figure(3),
        answered=figure(ratio),
        ratio=9,
        ratio_answered=ratio,
        processor=1.5,
        feasible=490,
    )


def growth_result(nodes: int, milliseconds: float, mebibytes: float = 330) -> GrowthResult:
    return GrowthResult(
        nodes=nodes,
        pods=30 * nodes,
        ready_seconds=nodes / 1000,
        edge=[edge_result("all", REFERENCE, 1), edge_result("all", MAIN, milliseconds)],
        cycle_bytes=5000,
        memory={"gateway": Memory(rss=400, pss=mebibytes), "filter": Memory(rss=100, pss=80)},
    )


def results() -> Results:
    """Return a run in which every budget was kept."""
    ratios = {
        ("50 names", MAIN): 6.0,
        ("500 names", NUMBERED): 0.8,
        ("500 names", MAIN): 1.3,
        ("500 names", PER_NODE): 1.5,
        ("5000 names", NUMBERED): 0.5,
        ("5000 names", MAIN): 0.7,
        ("5000 whole nodes", MAIN): 0.28,
    }
    edge = [edge_result("5000 names", NUMBERED, 0.1, pause=10)]
    for question in ("50 names", "500 names", "5000 names", "5000 whole nodes"):
        edge += [
            edge_result(question, REFERENCE, 1),
            edge_result(question, GO_PLUGINS, 1.2),
            edge_result(question, EMPTY_PROFILE, 0.1),
        ]
        edge += [
            edge_result(question, contender, ratio)
            for (asked, contender), ratio in ratios.items()
            if asked == question
        ]
    return Results(
        machine=Machine(
            date="2026-11-21 12:00 UTC",
            processor="a processor",
            cores=2,
            memory_gib=16,
            python="3.11",
            kernel="6",
            commit="abc",
            load=(0.1, 0.1, 0.1),
        ),
        quick=False,
        edge=edge,
        peers=[edge_result("1000 names", REFERENCE, 1), edge_result("1000 names", FASTAPI, 8)],
        scheduling=[scheduling_result(series, case.name) for series in SERIES for case in CASES],
        pauses={SERIES[0].name: figure(5)},
        kubernetes="v1.37.2",
        groups=[
            GroupResult(
                where="in one rack",
                contender="moorage",
                seconds=2.0,
                each=[1.5, 2.0, 2.5],
                ratio=1.25,
                calls=2000,
            )
        ],
        growth=[growth_result(1000, 10), growth_result(5000, 50), growth_result(10_000, 100)],
        cost=[
            CostResult(
                step="bind",
                calls=228,
                classes=80,
                modules=75,
                numpy=3,
                awaits=40,
                sent=1,
                calls_by_process={"gateway": 150, "binder": 78},
            )
        ],
    )


def scheduling_result(
    series: Series, contender: str, ratio: float | None = None, processor_ratio: float = 2.0
) -> SchedulingResult:
    """A row of a series; Moorage is at the limits of its budgets by default."""
    ours = contender in OURS
    found = (0.9 if ours else 1.0) if ratio is None else ratio
    processor = {"gateway": 1.25, "filter": 0.25} if ours else {"go": 0.5}
    return SchedulingResult(
        cluster=series.cluster,
        nodes=series.nodes,
        contender=contender,
        pods_per_second=100 * found,
        each=[90 * found, 110 * found],
        ratio=found,
        processor_ratio=processor_ratio if ours else 1.0,
        processor={} if contender == WITHOUT else processor,
    )
