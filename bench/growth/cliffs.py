"""Cliffs: what cycles take while something else happens, on 5,000 nodes with 150,000 pods.

At rest, while pods come and go, while the policy changes, and while a further scorer joins again
and again; beside that, the garbage collector's pauses and the memory of each process.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from bench.edge import measure as edge
from bench.edge.contenders import MAIN, PLUGIN_FILES, REFERENCE, of_go
from bench.edge.measure import Question
from bench.growth.nodes import memory
from bench.processes.goprograms import CLIENT, NOTHING
from bench.processes.load import Contender, Load
from bench.processes.objects import PODS_PER_NODE
from bench.processes.policies import policy, profile_name
from bench.processes.stacks import Bench, Cluster, Stack, opened
from bench.results import CliffResult, Cliffs, EdgeResult, Pauses, Results

NODES = 5000
NAMES = (500, 5000)
REST, CHURN, POLICY, JOIN = "at rest", "pods come and go", "the policy changes", "a scorer joins"
ROUNDS = 2000
SECONDS = 12.0
JOIN_SECONDS = 40.0
"""For each number of names; a join takes several seconds, in which pods are sent and decoded."""

CHANGED_PODS = 1000.0
"""Pods that are replaced in a second."""

POLICY_SECONDS = 2.0
LOOK_AGAIN = 2.0
"""Seconds between two looks at the gateway's metrics, which take some of its time."""

JOINING = "scorer-2"
LOWEST = 19
"""Niceness of the scorer that joins: elsewhere it has a machine of its own, here none to spare."""

WATCHED = ("gateway", "filter", "scorer-1")

_PAUSE = re.compile(r"^moorage_gc_pause_seconds_(bucket|sum|count)\{(.*)\} (\S+)$", re.M)
_BOUND = re.compile(r'le="([^"]+)"')


async def measure(results: Results, directory: Path, progress: Callable[[str], None]) -> None:
    """Measure one situation after another."""
    async with opened(directory, progress) as bench:
        progress(f"cliffs: a cluster of {NODES} nodes with {NODES * PODS_PER_NODE} pods")
        rate = directory / "changed-pods"
        rate.write_text("0")
        cluster = await bench.cluster(NODES, PODS_PER_NODE, changed_pods_file=rate)
        stack = await bench.moorage(
            "moorage", cluster.kubeconfig, policy(), scorers=2, plugins=PLUGIN_FILES
        )
        scene = _Scene(bench, cluster, stack, directory / "moorage" / "policy.yaml", rate, progress)
        results.cliffs = await scene.play()


@dataclass(slots=True)
class _Scene:
    bench: Bench
    cluster: Cluster
    stack: Stack
    policy: Path
    rate: Path
    progress: Callable[[str], None]
    found: dict[str, Contender] = field(default_factory=dict)
    events: int = 0

    async def play(self) -> Cliffs:
        """Measure everything."""
        joining = self.stack.processes[JOINING]
        joining.niceness = LOWEST
        await joining.stop()
        await self._ready(1)
        main = Contender(MAIN, self.stack.addresses.extender, profile_name("batch", 3))
        nothing = of_go(REFERENCE, await self.bench.go_extender(NOTHING))
        self.found = {one.name: one for one in (nothing, main)}
        load = Load(await self.bench.program(CLIENT))
        situations = [
            await self._situation(load, REST, nullcontext()),
            await self._situation(load, CHURN, self._churn()),
            await self._situation(load, POLICY, _meanwhile(self._change_policy())),
            await self._situation(load, JOIN, _meanwhile(self._join()), JOIN_SECONDS),
        ]
        pids = {name: pid for name, pid in self.stack.pids.items() if name != JOINING}
        return Cliffs(
            nodes=NODES,
            pods=NODES * PODS_PER_NODE,
            situations=situations,
            memory={name: memory(pid) for name, pid in pids.items()},
        )

    async def _situation(
        self,
        load: Load,
        name: str,
        happening: AbstractAsyncContextManager[None],
        seconds: float = SECONDS,
    ) -> CliffResult:
        loop = asyncio.get_running_loop()
        began, self.events = loop.time(), 0
        before = {process: await self._pauses(process) for process in WATCHED}
        found: list[EdgeResult] = []
        async with happening:
            for names in NAMES:
                self.progress(f"cliffs: {name}, {names} names")
                question = Question(
                    nodes=names, contenders=list(self.found), rounds=ROUNDS, seconds=seconds
                )
                job = edge.job(question, self.cluster, self.found)
                found += edge.summed_up(question, await load.run(job, lambda _: None))
        took = loop.time() - began
        pauses = {
            process: pauses_between(before[process], await self._pauses(process), took)
            for process in WATCHED
        }
        return CliffResult(situation=name, events=self.events, edge=found, pauses=pauses)

    @asynccontextmanager
    async def _churn(self) -> AsyncIterator[None]:
        began = asyncio.get_running_loop().time()
        self.rate.write_text(f"{CHANGED_PODS}")
        yield
        self.rate.write_text("0")
        self.events = round(CHANGED_PODS * (asyncio.get_running_loop().time() - began))

    async def _change_policy(self) -> None:
        """Write another weight into the policy, again and again; count active policies."""
        changed: Any = policy()
        weights = [
            plugin
            for profile in changed["profiles"]
            if "plugins" in profile
            for plugin in profile["plugins"]["score"]["enabled"]
        ]
        texts = [self.policy.read_text()]
        for plugin in weights:
            plugin["weight"] = plugin.get("weight", 1) + 1
        texts.append(yaml.safe_dump(changed))
        before = await self._sample('moorage_policy_reloads_total{outcome="ok"}')
        while True:
            for text in reversed(texts):
                self.policy.write_text(text)
                await asyncio.sleep(POLICY_SECONDS)
                now = await self._sample('moorage_policy_reloads_total{outcome="ok"}')
                self.events = round(now - before)

    async def _join(self) -> None:
        """Start a scorer and stop it once it takes part, again and again."""
        process = self.stack.processes[JOINING]
        try:
            while True:
                await process.start()
                await self._ready(2)
                self.events += 1
                await process.stop()
                await self._ready(1)
        finally:
            await process.stop()

    async def _ready(self, scorers: int) -> None:
        """Wait until so many scorers take part."""
        while await self._sample('moorage_replicas_ready{service="scorer"}') != scorers:
            await asyncio.sleep(LOOK_AGAIN)

    async def _sample(self, series: str) -> float:
        text = await _metrics(self.stack.addresses.admin)
        found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.M)
        return float(found[1]) if found else 0.0

    async def _pauses(self, process: str) -> Mapping[str, float]:
        served = self.stack.processes[process].served
        return read_pauses(await _metrics(f"http://{served['admin']}"))


def read_pauses(text: str) -> Mapping[str, float]:
    """Return the sum of all generations: by upper bound in seconds, and "sum" and "count"."""
    found: dict[str, float] = {}
    for what, labels, value in _PAUSE.findall(text):
        bound = _BOUND.search(labels)
        key = bound[1] if what == "bucket" and bound else what
        found[key] = found.get(key, 0.0) + float(value)
    return found


def pauses_between(before: Mapping[str, float], after: Mapping[str, float], took: float) -> Pauses:
    """Return what came between two readings, *took* seconds apart."""
    more = {key: value - before.get(key, 0.0) for key, value in after.items()}
    count = more.pop("count")
    share = more.pop("sum") / took
    longest = next((float(b) for b in sorted(more, key=float) if more[b] >= count), float("inf"))
    return Pauses(count=round(count), longest=longest * 1000 if count else 0.0, share=share)


@asynccontextmanager
async def _meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do something for as long as the block lasts; its failure ends the block."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        yield
        task.cancel()


async def _metrics(url: str) -> str:
    async with (
        asyncio.timeout(30),
        aiohttp.ClientSession() as session,
        session.get(f"{url}/metrics") as response,
    ):
        return await response.text()
