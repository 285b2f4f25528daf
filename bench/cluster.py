"""A real kube-scheduler: pods a second and processor time a pod, with and without extenders.

The cases take turns in an order that is mirrored from round to round, as the control plane slows
down while it runs. Moorage runs only while it is asked, as it takes processor time to follow the
cluster; it is warmed up before runs count.
"""

import dataclasses
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Literal

import aiohttp

from bench.processes import objects
from bench.processes.control_plane import NODES, Batch, ControlPlane, Run, started
from bench.processes.goprograms import NOTHING
from bench.processes.load import Pods
from bench.processes.objects import Object
from bench.processes.stacks import BATCH, GoExtender, opened
from bench.report import CLUSTER, Results, Table, Verdict, figure
from tools import build
from tools.planes.embedded import shipped_config

HEAVY, LIGHT = "heavy", "light"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Runs on one cluster; each run schedules new pods with one extender.

    Attributes:
        cluster: The kind of cluster.
        node: Makes the node of a number.
        heartbeats: Whether its nodes send heartbeats.
        pods: That wait when kube-scheduler starts; a run ends when as many are bound.
        arriving: Pods that are created in a second while it runs.
        rounds: Runs of each case.
        seconds: After which a run ends, even if pods are left.
        warm_up: Pods that processes schedule after their start, before runs count.
    """

    cluster: str
    node: Callable[[int], Object]
    heartbeats: bool
    arriving: float
    pods: int = 1000
    rounds: int = 4
    nodes: int = 5000
    seconds: float = 30.0
    warm_up: int = 100

    @property
    def name(self) -> str:
        """What the results call it."""
        return f"{self.cluster} cluster"

    def quick(self) -> "Series":
        """Return one round of few pods on a small cluster, to see whether it works."""
        return dataclasses.replace(self, nodes=500, pods=60, rounds=1, warm_up=20)


SERIES = (
    Series(cluster=HEAVY, node=objects.node, heartbeats=True, arriving=20),
    Series(cluster=LIGHT, node=objects.light_node, heartbeats=False, arriving=0),
)

WITHOUT, GO, GO_BINDS = "no extender", "go nothing", "go nothing, bindVerb"
MOORAGE, MOORAGE_UNLIKE = "moorage", "moorage, unlike pods"
MOORAGE_BINDS = "moorage, bindVerb"

BUDGETS = ((MOORAGE, 0.9, 2.0), (MOORAGE_BINDS, 0.9, 3.5), (MOORAGE_UNLIKE, 0.75, 4.0))
"""The least pods a second, and the most processor time a pod, by contender."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of the tables.

    Attributes:
        asked: The extender that kube-scheduler is configured with.
        binds: Whether with bindVerb.
        pods: How pods differ from each other.
        reference: The case that its pods a second are compared with.
    """

    name: str
    asked: Literal["nobody", "go", "moorage"]
    binds: bool = False
    pods: Pods = "equal"
    reference: str = GO


CASES = (
    Case(name=WITHOUT, asked="nobody"),
    Case(name=GO, asked="go"),
    Case(name=GO_BINDS, asked="go", binds=True),
    Case(name=MOORAGE, asked="moorage"),
    Case(name=MOORAGE_UNLIKE, asked="moorage", pods="unlike"),
    Case(name=MOORAGE_BINDS, asked="moorage", binds=True, reference=GO_BINDS),
)

NOT_SHARED = ("preemptVerb", "bindVerb")
"""Verbs of the shipped entry that cases do not have by default."""

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
USER, SYSTEM = 11, 12
"""Fields of /proc/PID/stat after the command, which may have spaces and ends with a parenthesis."""

Progress = Callable[[str], None]


async def measure(results: Results, directory: Path, progress: Progress) -> None:
    """Measure both kinds of cluster."""
    for series in SERIES:
        chosen = series.quick() if results.quick else series
        here = directory / series.cluster
        here.mkdir()
        async with started(here, progress) as plane:
            progress(f"{chosen.name}: creating {chosen.nodes} nodes")
            await plane.create(NODES, map(chosen.node, range(chosen.nodes)))
            async with plane.heartbeats(chosen.nodes) if chosen.heartbeats else nullcontext():
                await _schedule(results, chosen, plane, here, progress)


async def _schedule(
    results: Results, series: Series, plane: ControlPlane, directory: Path, progress: Progress
) -> None:
    runs = Runs(series)
    running = _Running(runs, plane, progress)
    async with opened(directory, progress) as bench:
        go = await bench.go_extender(NOTHING, f"-kubeconfig={plane.kubeconfig}")
        await running.warm_up("go", go.url)
        for number in range(series.rounds):
            cases = reversed(CASES) if number % 2 else CASES
            for ours, group in groupby(cases, lambda case: case.asked == "moorage"):
                if not ours:
                    await running.run_all(number, [*group], go.url, {"go": go.pid})
                    continue
                here = directory / f"round-{number}"
                here.mkdir()
                async with opened(here, progress) as inner:
                    stack = await inner.moorage(plane.kubeconfig)
                    url = stack.addresses.extender
                    await running.warm_up(number, url)
                    await running.run_all(number, [*group], url, stack.pids)
        report(results, runs, await _pauses(go))


@dataclass(slots=True)
class Runs:
    """What the runs of a series found so far, by case: pods/s, and milliseconds a pod."""

    series: Series
    rates: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    times: dict[str, list[dict[str, float]]] = field(default_factory=lambda: defaultdict(list))

    def rate(self, case: str) -> float:
        """Return the median pods a second of a case."""
        return median(self.rates[case])

    def spent(self, case: str) -> dict[str, float]:
        """Return the median milliseconds of processor time a pod of each process of a case."""
        times = self.times[case]
        return {name: median(one[name] for one in times) for name in times[0]}


@dataclass(frozen=True, slots=True)
class _Running:
    runs: Runs
    plane: ControlPlane
    progress: Progress

    async def run_all(
        self, number: int, cases: Sequence[Case], url: str, pids: Mapping[str, int]
    ) -> None:
        """Run cases with the extender that they ask, and the ids of its processes."""
        for case in cases:
            used = ProcessorTime({} if case.asked == "nobody" else pids)
            prefix = f"{CASES.index(case)}-{number}"  # no pod has the name of an earlier one
            run = await self._run(case, prefix, self.runs.series.pods, url)
            self.runs.rates[case.name].append(run.pods_per_second)
            self.runs.times[case.name].append(used.milliseconds_a_pod(run.bound))
            name = self.runs.series.name
            self.progress(f"{name}: {case.name}: {run.pods_per_second:.0f} pods/s")

    async def warm_up(self, name: object, url: str) -> None:
        """Run the case that calls every verb, with few pods; it does not count."""
        case = next(case for case in CASES if case.binds)
        await self._run(case, f"warm-up-{name}", self.runs.series.warm_up, url)

    async def _run(self, case: Case, prefix: str, count: int, url: str) -> Run:
        series = self.runs.series
        pods = Batch(
            prefix=prefix, profile=BATCH, kind=case.pods, waiting=count, arriving=series.arriving
        )
        run = await self.plane.schedule(pods, scheduler_config(case, url), seconds=series.seconds)
        await self.plane.delete_pods()
        return run


def report(results: Results, runs: Runs, pauses: Sequence[float]) -> None:
    """Add the table of a series, and its budgets.

    Args:
        results: Takes them.
        runs: All runs of the series.
        pauses: Nanoseconds between filter and prioritize in kube-scheduler.
    """
    series = runs.series
    spent = {case.name: sum(runs.spent(case.name).values()) for case in CASES}
    ratios = {case.name: runs.rate(case.name) / runs.rate(case.reference) for case in CASES}
    captions = [
        f"pods/s: median of {len(runs.rates[GO])} runs",
        "CPU: milliseconds of processor time a pod of all processes of the extender (ratio)",
        f"Kubernetes {build.kubernetes_version()}",
    ]
    if pauses:
        pause = figure(value / 1e6 for value in pauses)
        captions.append(f"kube-scheduler takes {pause} ms from filter to prioritize")
    rows = []
    for case in CASES:
        of_each = sorted(runs.spent(case.name).items(), key=lambda item: -item[1])
        rows.append(
            (
                case.name,
                f"{runs.rate(case.name):.0f}",
                f"{ratios[case.name]:.2f}",
                f"{spent[case.name]:.2f} ({spent[case.name] / spent[GO]:.1f})" if of_each else "-",
                ", ".join(f"{name} {time:.2f}" for name, time in of_each if len(of_each) > 1),
                ", ".join(f"{rate:.0f}" for rate in runs.rates[case.name]),
            )
        )
    results.tables.append(
        Table(
            part=CLUSTER,
            title=f"Pods/s, {series.name}, {series.nodes:,} nodes",
            caption="; ".join(captions),
            head=("", "pods/s", "ratio", "CPU", "of which", "runs"),
            rows=rows,
        )
    )
    work = "processor time a pod of all processes"
    for name, least, most in BUDGETS:
        results.verdicts += [
            Verdict(
                part=CLUSTER,
                work=f"pods/s, {series.name}, {name}",
                limit=least,
                measured=ratios[name],
                least=True,
            ),
            Verdict(
                part=CLUSTER,
                work=f"{work}, {series.name}, {name}",
                limit=most,
                measured=spent[name] / spent[GO],
            ),
        ]


def scheduler_config(case: Case, url: str) -> Object:
    """Return the shipped configuration with the extender of a case, and the default sample."""
    shipped = shipped_config()
    entry = {key: value for key, value in shipped["extenders"][0].items() if key not in NOT_SHARED}
    entry |= {"urlPrefix": url} | ({"bindVerb": "bind"} if case.binds else {})
    return {
        **shipped,
        "leaderElection": {"leaderElect": False},
        "percentageOfNodesToScore": 0,
        "profiles": [{"schedulerName": BATCH}],
        "extenders": [] if case.asked == "nobody" else [entry],
    }


async def _pauses(go: GoExtender) -> Sequence[float]:
    """Return how long kube-scheduler was busy between filter and prioritize, in nanoseconds."""
    async with aiohttp.ClientSession() as session, session.get(f"{go.url}/pauses") as response:
        return await response.json(content_type=None) or ()


def processor_seconds(pid: int) -> float:
    """Return the processor time that all threads of a process have used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[USER]) + int(fields[SYSTEM])) / TICKS_PER_SECOND


class ProcessorTime:
    """Counts from when it is made."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self._before = {name: processor_seconds(pid) for name, pid in pids.items()}

    def milliseconds_a_pod(self, pods: int) -> dict[str, float]:
        """Return what each process has used since, divided by a number of pods."""
        used = {name: processor_seconds(pid) for name, pid in self._pids.items()}
        return {name: 1000 * (used[name] - self._before[name]) / pods for name in used}
