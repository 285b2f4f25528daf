"""Draws what a run found as SVG: bars for most parts, lines for growth."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from bench.cluster.cases import ALL_NODES
from bench.parts import CLIFFS, CLUSTER, EDGE, FULL_SAMPLE, GROWTH, PARTS, RECORDS, REPLICAS
from bench.report.files import OUT
from bench.results import Results, SchedulingResult
from cli.shared.drawing.svg import bars, lines


def draw_all(results: Results, folder: Path = OUT) -> list[Path]:
    """Draw every plot there is something for; return the files."""
    return [file for part in PARTS for file in draw(results, part, folder)]


def draw(results: Results, part: str, folder: Path = OUT) -> list[Path]:
    """Draw the plots of a part; return the files."""
    folder.mkdir(exist_ok=True)
    files: list[Path] = []
    for name, text in PLOTS[part](results):
        file = folder / f"{name}.svg"
        file.write_text(text)
        files.append(file)
    return files


def _edge(results: Results) -> Iterator[tuple[str, str]]:
    for (question, pause), group in groupby(results.edge, lambda r: (r.question, r.pause)):
        title = f"filter + prioritize, {question}" + (f", pause of {pause:g} ms" if pause else "")
        values = {one.contender: (one.answered.p50, one.answered.p99) for one in group}
        name = f"edge-{question}" + ("-pause" if pause else "")
        yield name.replace(" ", "-"), bars(f"{title}: p50 / p99", values, "ms")


def _default_sample(results: Results) -> Iterator[tuple[str, str]]:
    return _scheduling(r for r in results.scheduling if r.sampling != ALL_NODES)


def _full_sample(results: Results) -> Iterator[tuple[str, str]]:
    return _scheduling(r for r in results.scheduling if r.sampling == ALL_NODES)


def _scheduling(rows: Iterable[SchedulingResult]) -> Iterator[tuple[str, str]]:
    for series, group in groupby(rows, lambda row: row.series):
        rates = {row.contender: (min(row.each), max(row.each)) for row in group}
        name = "pods-" + re.sub("[^a-z0-9]+", "-", series).strip("-")
        yield name, bars(f"Pods/s, {series}: slowest / fastest run", rates, "")


def _replicas(results: Results) -> Iterator[tuple[str, str]]:
    for nodes, of_size in groupby(results.replicas, lambda one: one.nodes):
        values = {
            f"{one.microseconds:g} us for a node, {one.scorers}": (
                one.answered.p50,
                one.answered.p99,
            )
            for one in of_size
        }
        title = f"filter + prioritize, {nodes} names, by number of scorers: p50 / p99"
        yield f"replicas-{nodes}-names", bars(title, values, "ms")


def _growth(results: Results) -> Iterator[tuple[str, str]]:
    if len(results.growth) > 1:
        yield "growth-time", lines("filter + prioritize of all nodes, p50", _times(results), "ms")
        yield "growth-memory", lines("Memory (PSS)", _memory(results), "MiB")


def _times(results: Results) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for size in results.growth:
        for one in size.edge:
            series.setdefault(one.contender, []).append((size.nodes, one.answered.p50))
    return series


def _memory(results: Results) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for size in results.growth:
        for name, memory in size.memory.items():
            series.setdefault(name, []).append((size.nodes, memory.pss))
    return series


def _nothing(_: Results) -> Iterator[tuple[str, str]]:
    return iter(())


PLOTS: Mapping[str, Callable[[Results], Iterator[tuple[str, str]]]] = {
    EDGE: _edge,
    CLUSTER: _default_sample,
    FULL_SAMPLE: _full_sample,
    GROWTH: _growth,
    CLIFFS: _nothing,
    REPLICAS: _replicas,
    RECORDS: _nothing,
}
"""Names and texts of the plots of each part."""
