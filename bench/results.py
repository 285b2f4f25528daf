"""What a run of the bench found, as it is written to bench/out/latest.json."""

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

ROOT = Path(__file__).resolve().parents[1]

PARTS = ("cost", "edge", "cluster", "growth", "groups", "peers")
COST, EDGE, CLUSTER, GROWTH, GROUPS, PEERS = PARTS
"""The parts of the bench in their order: each can be measured, printed and published alone.

GROUPS and PEERS are measured only where they are named.
"""


class Figure(msgspec.Struct, frozen=True):
    """A sample in brief; the unit is the measurements'."""

    p50: float
    p99: float
    count: int


def figure(values: Iterable[float]) -> Figure:
    """Sum up measurements.

    Raises:
        ValueError: There is none.
    """
    sample = list(values)
    if not sample:
        raise ValueError("nothing was measured")
    p50, p99 = map(float, np.quantile(sample, (0.5, 0.99)))
    return Figure(p50=p50, p99=p99, count=len(sample))


class EdgeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One contender at one question, all times in milliseconds.

    Attributes:
        question: Such as "5000 names".
        contender: The extender; "go nothing" is the reference.
        pause: Between filter and prioritize.
        filter: Until the answer is decoded, as all times without another definition.
        prioritize: The same.
        both: Filter plus prioritize, pod by pod, without the pause.
        answered: The same as `both`, but only until the last byte of each answer is there.
        ratio: p50 of `both` to that of the reference in the same rounds.
        ratio_answered: The same of `answered`, p50.
        processor: Processor time of all its processes for both calls, the mean.
        feasible: How many nodes remained, the mean.
    """

    question: str
    contender: str
    pause: float
    filter: Figure
    prioritize: Figure
    both: Figure
    answered: Figure
    ratio: float
    ratio_answered: float
    processor: float
    feasible: float


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Of one process, in MiB; pss counts pages that are shared in part."""

    rss: float
    pss: float


class GrowthResult(msgspec.Struct, frozen=True, kw_only=True):
    """One size of cluster.

    Attributes:
        ready_seconds: From the start of all processes until the gateway is ready.
        edge: With all nodes named.
        cycle_bytes: What the gateway sends to its replicas, for each cycle.
        memory: Of each process of Moorage, after it all.
    """

    nodes: int
    pods: int
    ready_seconds: float
    edge: list[EdgeResult]
    cycle_bytes: float
    memory: dict[str, Memory]


class SchedulingResult(msgspec.Struct, frozen=True, kw_only=True):
    """Pods a second through a real kube-scheduler.

    Attributes:
        cluster: The kind of cluster, "heavy" or "light".
        nodes: How many it has.
        contender: The extender, or how it is used.
        pods_per_second: The median of the runs.
        each: Every run.
        ratio: To the Go extender that does nothing, or does nothing but bind, in the same runs.
        processor_ratio: Of the processor time of all its processes, to that of the Go extender that
            does nothing; 0 where nobody is asked.
        processor: Milliseconds of processor time a pod of each of its processes, by name; medians.
    """

    cluster: str
    nodes: int
    contender: str
    pods_per_second: float
    each: list[float]
    ratio: float
    processor_ratio: float
    processor: dict[str, float]

    @property
    def series(self) -> str:
        """Which runs it can be compared with."""
        return f"{self.cluster} cluster"

    @property
    def processor_total(self) -> float:
        """Milliseconds of processor time a pod of all its processes."""
        return sum(self.processor.values())


class GroupResult(msgspec.Struct, frozen=True, kw_only=True):
    """How long kube-scheduler takes to place a pod group.

    Attributes:
        where: Which nodes it may be on.
        contender: The extender.
        seconds: From when it is complete until its last pod is bound, the median.
        each: Every run.
        ratio: To that without an extender.
        calls: Filter calls of Moorage in the last run.
    """

    where: str
    contender: str
    seconds: float
    each: list[float]
    ratio: float
    calls: int | None


class CostResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one call makes all processes of Moorage do together, counted: the least of all rounds.

    Attributes:
        step: The call.
        calls: Calls of Python functions that are ours, each step of a coroutine included.
        classes: Our classes of which a method ran.
        modules: Our modules of which a function ran.
        numpy: Calls of functions and methods of numpy; operators on arrays are not seen.
        awaits: Steps of coroutines, ours and others.
        sent: Messages that the gateway sent to services.
        calls_by_process: Our calls by process.
    """

    step: str
    calls: int
    classes: int
    modules: int
    numpy: int
    awaits: int
    sent: int
    calls_by_process: Mapping[str, int]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A budget, and whether it was kept; `measured`, in `unit`, is None if it was not measured."""

    part: str
    work: str
    bound: str
    measured: float | None
    kept: bool | None
    unit: str = "x"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where and when it was measured.

    Attributes:
        load: The load averages before the run: more than a few tenths means a busy machine.
    """

    date: str
    processor: str
    cores: int
    memory_gib: float
    python: str
    kernel: str
    commit: str
    load: tuple[float, float, float]


def machine() -> Machine:
    """Describe this machine, now."""
    return Machine(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        processor=_from_proc("cpuinfo", "model name") or platform.processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        python=platform.python_version(),
        kernel=platform.release(),
        commit=_commit(),
        load=os.getloadavg(),
    )


def _from_proc(file: str, key: str) -> str:
    for line in Path("/proc", file).read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return run.stdout.strip() or "unknown"


class Results(msgspec.Struct, kw_only=True):
    """All of a run."""

    machine: Machine
    quick: bool
    seconds: float = 0
    edge: list[EdgeResult] = []
    peers: list[EdgeResult] = []
    scheduling: list[SchedulingResult] = []
    pauses: dict[str, Figure] = {}
    """Milliseconds between filter and prioritize in kube-scheduler, by series."""
    kubernetes: str = ""
    """The release of the control plane."""
    growth: list[GrowthResult] = []
    groups: list[GroupResult] = []
    cost: list[CostResult] = []
    verdicts: list[Verdict] = []
    notes: list[str] = []
