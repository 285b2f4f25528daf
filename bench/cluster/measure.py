"""A real kube-scheduler: pods a second and processor time a pod, with and without extenders.

The cases take turns in an order that is mirrored from round to round, as the control plane slows
down while it runs. Moorage runs only while it is asked, as it takes processor time to follow the
cluster; it is warmed up before runs count.
"""

import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import median

import aiohttp

from bench.cluster.cases import CASES, GO, SERIES, Batch, Case, Series
from bench.cluster.control_plane import ControlPlane, Run, started
from bench.processes.goprograms import NOTHING
from bench.processes.objects import Object
from bench.processes.stacks import BATCH, GoExtender, Stack, opened
from bench.results import Figure, Results, SchedulingResult, figure
from tools import build
from tools.planes.embedded import shipped_config

NOT_SHARED = ("preemptVerb", "bindVerb")
"""Verbs of the shipped entry that cases do not have by default."""

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
USER, SYSTEM = 11, 12
"""Fields of /proc/PID/stat after the command, which may have spaces and ends with a parenthesis."""

Progress = Callable[[str], None]


async def measure(results: Results, directory: Path, progress: Progress) -> None:
    """Measure both kinds of cluster."""
    results.kubernetes = build.kubernetes_version()
    for series in SERIES:
        chosen = series.quick() if results.quick else series
        async with _cluster(chosen, directory, progress) as plane:
            await _schedule(results, chosen, plane, directory, progress)


@asynccontextmanager
async def _cluster(
    series: Series, directory: Path, progress: Progress
) -> AsyncIterator[ControlPlane]:
    here = directory / series.cluster
    here.mkdir()
    async with started(here, progress) as plane:
        progress(f"{series.cluster} cluster: creating {series.nodes} nodes")
        await plane.create_nodes(map(series.node, range(series.nodes)))
        async with plane.heartbeats(series.nodes) if series.heartbeats else nullcontext():
            yield plane


@asynccontextmanager
async def _moorage(
    plane: ControlPlane, directory: Path, progress: Progress
) -> AsyncIterator[Stack]:
    directory.mkdir()
    async with opened(directory, progress) as bench:
        yield await bench.moorage("moorage", plane.kubeconfig)


async def _schedule(
    results: Results, series: Series, plane: ControlPlane, directory: Path, progress: Progress
) -> None:
    runs = _Runs(series, plane, progress)
    async with opened(directory / series.cluster, progress) as bench:
        go = await bench.go_extender(NOTHING, f"-kubeconfig={plane.kubeconfig}")
        await runs.warm_up("go", go.url)
        for number in range(series.rounds):
            cases = reversed(CASES) if number % 2 else CASES
            for ours, group in groupby(cases, lambda case: case.asked == "moorage"):
                if not ours:
                    await runs.run_all(number, [*group], go.url, {"go": go.pid})
                    continue
                here = directory / series.cluster / f"round-{number}"
                async with _moorage(plane, here, progress) as stack:
                    url = stack.addresses.extender
                    await runs.warm_up(number, url)
                    await runs.run_all(number, [*group], url, stack.pids)
        if pauses := await _pauses(go):
            results.pauses[series.name] = pauses
    results.scheduling += runs.results()


@dataclass(slots=True)
class _Runs:
    """The runs of a series so far."""

    series: Series
    plane: ControlPlane
    progress: Progress
    rates: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    times: dict[str, list[dict[str, float]]] = field(default_factory=lambda: defaultdict(list))

    async def run_all(
        self, number: int, cases: Sequence[Case], url: str, pids: Mapping[str, int]
    ) -> None:
        """Run cases with the extender that they ask, and the ids of its processes."""
        for case in cases:
            used = ProcessorTime({} if case.asked == "nobody" else pids)
            prefix = f"{CASES.index(case)}-{number}"  # no pod has the name of an earlier one
            run = await self._run(case, prefix, self.series.pods, url)
            self.rates[case.name].append(run.pods_per_second)
            self.times[case.name].append(used.milliseconds_a_pod(run.bound))
            self.progress(f"{self.series.name}: {case.name}: {run.pods_per_second:.0f} pods/s")
            await self.plane.delete_pods()

    async def warm_up(self, name: object, url: str) -> None:
        """Run the case that calls every verb, with few pods; it does not count."""
        case = next(case for case in CASES if case.binds)
        await self._run(case, f"warm-up-{name}", self.series.warm_up, url)
        await self.plane.delete_pods()

    async def _run(self, case: Case, prefix: str, count: int, url: str) -> Run:
        series = self.series
        return await self.plane.schedule(
            Batch(
                prefix=prefix,
                profile=BATCH,
                kind=case.pods,
                waiting=count,
                arriving=series.arriving,
            ),
            scheduler_config(case, url),
            seconds=series.seconds,
        )

    def results(self) -> Iterator[SchedulingResult]:
        """Yield the medians of each case."""
        spent = {
            case.name: {
                name: median(one[name] for one in self.times[case.name])
                for name in self.times[case.name][0]
            }
            for case in CASES
        }
        of_go = sum(spent[GO].values())
        for case in CASES:
            rates = self.rates[case.name]
            rate = median(rates)
            yield SchedulingResult(
                cluster=self.series.cluster,
                nodes=self.series.nodes,
                contender=case.name,
                pods_per_second=rate,
                each=rates,
                ratio=rate / median(self.rates[case.reference]),
                processor_ratio=sum(spent[case.name].values()) / of_go,
                processor=spent[case.name],
            )


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


async def _pauses(go: GoExtender) -> Figure | None:
    """Return how long kube-scheduler is busy between filter and prioritize, in milliseconds."""
    async with aiohttp.ClientSession() as session, session.get(f"{go.url}/pauses") as response:
        pauses = await response.json(content_type=None)
    return figure(value / 1e6 for value in pauses) if pauses else None


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
