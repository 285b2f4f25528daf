"""Results for tests, made up."""

from bench.cluster.cases import CASES, FULL_SAMPLE, OURS, SERIES, WITHOUT, Series
from bench.edge.contenders import EMPTY_PROFILE, GO_PLUGINS, MAIN, NUMBERED, REFERENCE
from bench.figures import Figure
from bench.growth.cliffs import CHURN, JOIN, REST
from bench.growth.replicas import ONE
from bench.processes.load import Call, Round
from bench.results import (
    BindResult,
    CliffResult,
    Cliffs,
    EdgeResult,
    GrowthResult,
    Machine,
    Memory,
    Pauses,
    RecordsResult,
    ReplicasResult,
    Results,
    SchedulingResult,
)

MILLISECOND = 1_000_000


def figure(p50: float) -> Figure:
    return Figure(p50=p50, p99=2 * p50, mean=p50, count=100)


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
        ratio_p99=9,
        ratio_answered=ratio,
        processor=1.5,
        failures=0,
        feasible=490,
        sent=1000,
        received=500,
    )


def growth_result(nodes: int, milliseconds: float) -> GrowthResult:
    return GrowthResult(
        nodes=nodes,
        pods=30 * nodes,
        ready_seconds=nodes / 1000,
        edge=[edge_result("all", REFERENCE, 1), edge_result("all", MAIN, milliseconds)],
        cycle_bytes=5000,
        memory={"gateway": Memory(rss=100, pss=80)},
    )


def cliffs(*, joining: float = 20, mebibytes: float = 470) -> Cliffs:
    """Cycles at rest and while a scorer joins, whose p99 is so many milliseconds longer."""

    def situation(name: str, longer: float) -> CliffResult:
        edge = [
            edge_result(question, contender, milliseconds)
            for question in ("500 names", "5000 names")
            for contender, milliseconds in ((REFERENCE, 10.0), (MAIN, 10 + longer / 2))
        ]
        pauses = {"gateway": Pauses(count=3, longest=50, share=0.0123)}
        return CliffResult(situation=name, events=4, edge=edge, pauses=pauses)

    return Cliffs(
        nodes=5000,
        pods=150_000,
        situations=[situation(REST, 0), situation(CHURN, 99), situation(JOIN, joining)],
        memory={"gateway": Memory(rss=500, pss=mebibytes), "filter": Memory(rss=100, pss=80)},
    )


def results() -> Results:
    """Return a run in which every budget was kept."""
    unlike = {"5000 names": 0.8, "5000 whole nodes": 0.3}
    questions = {"50 names": 3.0, "500 names": 1.5, "5000 names": 0.6, "5000 whole nodes": 0.3}
    edge = [edge_result("5000 names", NUMBERED, 0.1, pause=10)]
    for question, ratio in questions.items():
        edge += [
            edge_result(question, REFERENCE, 1),
            edge_result(question, GO_PLUGINS, 1.2),
            edge_result(question, EMPTY_PROFILE, 0.1),
            edge_result(question, MAIN, unlike.get(question, 2 * ratio)),
            edge_result(question, NUMBERED, ratio),
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
        scheduling=[
            scheduling_result(series, case.name)
            for series in (*SERIES, FULL_SAMPLE)
            for case in CASES
        ],
        pauses={SERIES[0].name: figure(5)},
        kubernetes="v1.37.2",
        binds=[
            BindResult(
                contender="moorage",
                in_flight=32,
                latency=figure(4),
                binds_per_second=400,
                failures=0,
            )
        ],
        growth=[growth_result(1000, 10), growth_result(10_000, 100)],
        cliffs=cliffs(),
        replicas=[replicas_result(ONE, 10), replicas_result("2, always", 7.5)],
        records=[records_result("unlike", 1.03)],
    )


def records_result(pods: str, ratio: float) -> RecordsResult:
    return RecordsResult(
        nodes=500,
        pods=pods,
        answered=figure(10 * ratio),
        answered_without=figure(10),
        ratio=ratio,
        processor_ratio=1.01,
    )


def replicas_result(scorers: str, milliseconds: float) -> ReplicasResult:
    return ReplicasResult(
        nodes=5000,
        microseconds=1.0,
        scorers=scorers,
        answered=figure(milliseconds),
        ratio=milliseconds / 10,
    )


def scheduling_result(
    series: Series, contender: str, ratio: float | None = None, gateway: float = 1.25
) -> SchedulingResult:
    """A row of a series; Moorage is at the limits of its budgets by default."""
    ours = contender in OURS
    found = (0.9 if ours else 1.0) if ratio is None else ratio
    processor = {"gateway": gateway, "filter": 0.25} if ours else {"go": 0.5}
    return SchedulingResult(
        cluster=series.cluster,
        nodes=series.nodes,
        sampling=series.sampling,
        contender=contender,
        pods_per_second=100 * found,
        each=[90 * found, 110 * found],
        ratio=found,
        processor={} if contender == WITHOUT else processor,
    )
