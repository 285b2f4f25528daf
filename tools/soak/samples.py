"""Samples of processes: how they are read, and whether something grows."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression

_PAGE = os.sysconf("SC_PAGE_SIZE")

DESCRIPTORS, THREADS = 8, 4
"""How many more a process may have in the end than at the begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one process uses; memory in MiB."""

    rss: float
    descriptors: int
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What processes use at one time, in minutes since the begin."""

    minutes: float
    usage: Mapping[str, Usage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """What became of one process after the warm-up.

    Attributes:
        name: The process.
        last: Its memory in the end, in MiB.
        slope: MiB an hour, by least squares.
        descriptors: How many more it has open than at the begin, without idle connections.
        threads: The same of threads.
    """

    name: str
    last: float
    slope: float
    descriptors: int
    threads: int

    def __str__(self) -> str:
        grown = f"{self.descriptors:+} descriptors, {self.threads:+} threads"
        return f"{self.name:15} {self.last:7.1f} MiB, {self.slope:+6.1f} MiB/h, {grown}"

    def grows(self, most: float) -> bool:
        """Whether it has gained more than *most* MiB an hour, or descriptors, or threads."""
        return self.slope > most or self.descriptors > DESCRIPTORS or self.threads > THREADS


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
        last=points[-1][1],
        slope=slope(points),
        descriptors=calm.descriptors - begin.descriptors,
        threads=calm.threads - begin.threads,
    )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the line that fits points best."""
    xs, ys = zip(*points, strict=True)
    return linear_regression(xs, ys).slope if len(set(xs)) > 1 else 0.0
