"""The short tables of README.md: ratios to the Go extender that does nothing."""

from collections.abc import Callable, Iterator, Mapping

from bench.cluster.cases import (
    ALL_NODES,
    GO,
    GO_BINDS,
    HEAVY,
    LIGHT,
    MOORAGE,
    MOORAGE_BINDS,
    MOORAGE_UNLIKE,
    WITHOUT,
)
from bench.edge.contenders import EMPTY_PROFILE, MAIN, NUMBERED
from bench.parts import CLUSTER, EDGE
from bench.results import Results, SchedulingResult

EDGE_ROWS: Mapping[str, tuple[str, str]] = {
    "5,000 names, pods of a StatefulSet": ("5000 names", NUMBERED),
    "5,000 names, pods unlike any before": ("5000 names", MAIN),
    "5,000 names, a profile without plugins": ("5000 names", EMPTY_PROFILE),
    "500 names, pods of a StatefulSet": ("500 names", NUMBERED),
    "500 names, pods unlike any before": ("500 names", MAIN),
    "500 names, a profile without plugins": ("500 names", EMPTY_PROFILE),
    "5,000 whole nodes": ("5000 whole nodes", MAIN),
}
CLUSTER_ROWS: Mapping[str, str] = {
    WITHOUT: "no extender",
    GO: "Go that does nothing",
    MOORAGE: "Moorage, equal pods",
    MOORAGE_UNLIKE: "Moorage, pods unlike any before",
    GO_BINDS: "Go that only binds",
    MOORAGE_BINDS: "Moorage, with `bindVerb`",
}


def lines(results: Results, part: str) -> list[str]:
    """Return the short table of a part; none if the part has none."""
    if part not in BY_PART:
        return []
    machine = results.machine
    return [f"Measured {machine.date}, commit {machine.commit}:", "", *BY_PART[part](results)]


def _edge(results: Results) -> Iterator[str]:
    ratios = {(r.question, r.contender): r.ratio_answered for r in results.edge if not r.pause}
    yield "| filter and prioritize | time, as a ratio to Go's |"
    yield "|---|---:|"
    for name, row in EDGE_ROWS.items():
        if row in ratios:
            yield f"| {name} | {ratios[row]:.2f} |"


def _cluster(results: Results) -> Iterator[str]:
    rows = {(r.cluster, r.contender): r for r in results.scheduling if r.sampling != ALL_NODES}
    yield "| extender | heavy nodes: pods/s (ratio), CPU | light nodes: pods/s (ratio), CPU |"
    yield "|---|---:|---:|"
    for contender, name in CLUSTER_ROWS.items():
        cells = (_cell(rows.get((cluster, contender))) for cluster in (HEAVY, LIGHT))
        yield f"| {name} | {' | '.join(cells)} |"


def _cell(row: SchedulingResult | None) -> str:
    if row is None:
        return "-"
    time = f", {row.processor_total:.1f} ms" if row.processor else ""
    return f"{row.pods_per_second:.0f} ({row.ratio:.2f}){time}"


BY_PART: Mapping[str, Callable[[Results], Iterator[str]]] = {EDGE: _edge, CLUSTER: _cluster}
