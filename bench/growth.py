"""Growth: the same stack on clusters from 1,000 to 50,000 nodes with 30 pods each.

All nodes are named in each call, so that cycle times show how the work grows. Meanwhile the cluster
lives: heartbeats of its nodes, and pods that come and go.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import edge
from bench.edge import GO_PLUGINS, MAIN, REFERENCE, Question, of_go, of_moorage
from bench.processes.goprograms import CLIENT, NOTHING, PLUGINS
from bench.processes.load import Contender, Load, LoadError
from bench.processes.objects import PODS_PER_NODE
from bench.processes.stacks import BATCH, Bench, Cluster, NotReadyError, Stack, opened
from bench.results import GrowthResult, Memory, Results

SIZES = (1000, 5000, 10_000, 50_000)
ROUNDS = 60
SECONDS = 60.0
CHANGED_PODS = 10.0
"""Pods that are replaced in a second."""

HEARTBEAT_SECONDS = 300.0

MOST_FOR_GO = 10_000
"""Nodes of the largest cluster that the Go extender with a cache follows: it keeps whole objects,
and those of 50,000 nodes with 1.5 million pods took more than 9 GB."""


async def measure(
    results: Results,
    sizes: Sequence[int],
    directory: Path,
    progress: Callable[[str], None],
    save: Callable[[], None],
) -> None:
    """Measure size by size, and *save* each; one that cannot be measured is noted and ends it."""
    for nodes in sizes:
        progress(f"growth: a cluster of {nodes} nodes")
        here = directory / f"growth-{nodes}"
        here.mkdir()
        async with opened(here, progress) as bench:
            try:
                results.growth.append(await _measure_one(bench, nodes, progress))
            except (NotReadyError, LoadError) as error:
                results.notes.append(f"growth, {nodes} nodes: {error}")
                return
        save()


async def _measure_one(bench: Bench, nodes: int, progress: Callable[[str], None]) -> GrowthResult:
    cluster = await bench.cluster(
        nodes, PODS_PER_NODE, heartbeats=nodes / HEARTBEAT_SECONDS, changed_pods=CHANGED_PODS
    )
    began = time.monotonic()
    stack = await bench.moorage("moorage", cluster.kubeconfig)
    ready = time.monotonic() - began
    found = await _contenders(bench, cluster, stack, nodes)
    question = Question(nodes=nodes, contenders=list(found), rounds=ROUNDS, seconds=SECONDS)
    sent = await _sent_bytes(stack)
    load = Load(await bench.program(CLIENT))
    rounds = await load.run(edge.job(question, cluster, found), lambda _: None)
    cycles = edge.WARM_UP + len(rounds) // len(found)
    progress(f"growth: {nodes} nodes are done")
    return GrowthResult(
        nodes=nodes,
        pods=nodes * PODS_PER_NODE,
        ready_seconds=ready,
        edge=list(edge.summed_up(question, rounds)),
        cycle_bytes=(await _sent_bytes(stack) - sent) / cycles,
        memory={name: memory(pid) for name, pid in stack.pids.items()},
    )


def memory(pid: int) -> Memory:
    """Read how much memory a process has, in MiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    amounts = dict(re.findall(r"^(Rss|Pss):\s+(\d+) kB", text, re.M))
    return Memory(rss=int(amounts["Rss"]) / 1024, pss=int(amounts["Pss"]) / 1024)


async def _contenders(
    bench: Bench, cluster: Cluster, stack: Stack, nodes: int
) -> Mapping[str, Contender]:
    main = of_moorage(MAIN, stack, BATCH)
    found = [of_go(REFERENCE, await bench.go_extender(NOTHING))]
    if nodes <= MOST_FOR_GO:
        extender = await bench.go_extender(PLUGINS, f"-api={cluster.api}")
        found.append(of_go(GO_PLUGINS, extender))
    return {one.name: one for one in (*found, main)}


async def _sent_bytes(stack: Stack) -> float:
    """Return what the gateway has sent to its replicas after the full snapshots."""
    parts = ("delta", "cycle")
    return sum([await stack.counted("moorage_session_sent_bytes_total", part=p) for p in parts])
