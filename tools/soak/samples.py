"""Samples of processes: how they are read, written as CSV, and whether something grows."""

import csv
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, linear_regression, pvariance

PARTS, STUDENT = 8, 2.447
"""Parts of a run for its confidence interval, and Student's t for two less than them."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one process uses."""

    rss: float  # MiB
    descriptors: int
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """All processes at one time.

    Attributes:
        minutes: Since the begin.
        usage: By process.
        p50: Milliseconds of a filter call.
        p99: The same.
        pods: Created so far.
    """

    minutes: float
    usage: Mapping[str, Usage]
    p50: float
    p99: float
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """What became of one process after the warm-up.

    Attributes:
        name: The process.
        first: Its memory after the warm-up, in MiB.
        last: Its memory in the end.
        slope: MiB an hour, by least squares.
        error: How far off the slope may be, with 95 % confidence; see `slope_error`.
        descriptors: How many more it has open than at the begin, without idle connections.
        threads: The same of threads.
    """

    name: str
    first: float
    last: float
    slope: float
    error: float
    descriptors: int
    threads: int


def usage(pid: int) -> Usage:
    """Read what a process uses now."""
    proc = Path(f"/proc/{pid}")
    return Usage(
        rss=int((proc / "statm").read_text().split()[1]) * _PAGE / 2**20,
        descriptors=len(list((proc / "fd").iterdir())),
        threads=len(list((proc / "task").iterdir())),
    )


def trend(name: str, samples: Sequence[Sample], warm_up: float, calm: Usage) -> Trend:
    """Return what became of a process after *warm_up* minutes, and in the *calm* at the end."""
    warm = [sample for sample in samples if sample.minutes >= warm_up]
    points = [(sample.minutes / 60, sample.usage[name].rss) for sample in warm]
    begin = samples[0].usage[name]
    return Trend(
        name=name,
        first=points[0][1],
        last=points[-1][1],
        slope=slope(points),
        error=slope_error(points),
        descriptors=calm.descriptors - begin.descriptors,
        threads=calm.threads - begin.threads,
    )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the line that fits points best."""
    xs, ys = zip(*points, strict=True)
    return linear_regression(xs, ys).slope if len(set(xs)) > 1 else 0.0


def slope_error(points: Sequence[tuple[float, float]]) -> float:
    """Return half the width of the 95 % confidence interval of the slope.

    Memory goes in steps, so samples that follow each other are not independent: what counts is how
    far the means of `PARTS` parts of equal length are from one line.
    """
    size = len(points) // PARTS
    if size == 0:
        return math.inf
    parts = [points[start : start + size] for start in range(0, PARTS * size, size)]
    xs, ys = ([fmean(point[axis] for point in part) for part in parts] for axis in (0, 1))
    if len(set(xs)) == 1:
        return math.inf
    steep, start = linear_regression(xs, ys)
    left = fmean((y - start - steep * x) ** 2 for x, y in zip(xs, ys, strict=True)) * PARTS
    return STUDENT * math.sqrt(left / (PARTS - 2) / (pvariance(xs) * PARTS))


def write_csv(samples: Sequence[Sample], names: Sequence[str], folder: Path) -> None:
    """Write soak.csv; after every sample, so that a run can be watched."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "soak.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        each = [f"{name}_{what}" for name in names for what in ("mib", "fds", "threads")]
        rows.writerow(["minutes", "pods", "p50_ms", "p99_ms", *each])
        for one in samples:
            used = [one.usage[name] for name in names]
            columns = [f"{v}" for u in used for v in (round(u.rss, 1), u.descriptors, u.threads)]
            rows.writerow(
                [f"{one.minutes:.2f}", one.pods, f"{one.p50:.2f}", f"{one.p99:.2f}", *columns]
            )


def table(trends: Sequence[Trend]) -> str:
    """Return the trends as text."""
    head = f"{'process':15} {'MiB then':>9} {'now':>7} {'MiB/h':>8} {'95 %':>7} {'fds':>5} threads"
    rows = [
        f"{t.name:15} {t.first:>9.1f} {t.last:>7.1f} {t.slope:>+8.1f} {f'±{t.error:.1f}':>7} "
        f"{t.descriptors:>+5} {t.threads:>+7}"
        for t in trends
    ]
    return "\n".join([head, *rows])
