"""Growth: the same stack on clusters from 1,000 to 50,000 nodes with 30 pods each.

All nodes are named in each call, so that cycle times show how the work grows. Meanwhile the cluster
lives: heartbeats of its nodes, and pods that come and go.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import linear_regression

from bench.edge import (
    GO_PLUGINS,
    MAIN,
    REFERENCE,
    WARM_UP,
    Asked,
    Question,
    of_go,
    of_moorage,
    summed_up,
)
from bench.processes.goprograms import CLIENT, NOTHING, PLUGINS
from bench.processes.load import Contender, Load, LoadError
from bench.processes.objects import PODS_PER_NODE
from bench.processes.stacks import BATCH, Bench, Cluster, NotReadyError, Stack, opened
from bench.report import GROWTH, Results, Table, Verdict

SIZES = (1000, 5000, 10_000, 50_000)
ROUNDS = 60
SECONDS = 60.0
CHANGED_PODS = 10.0
"""Pods that are replaced in a second."""

HEARTBEAT_SECONDS = 300.0

MOST_FOR_GO = 10_000
"""Nodes of the largest cluster that the Go extender with a cache follows: it keeps whole objects,
and those of 50,000 nodes with 1.5 million pods took more than 9 GB."""


MEMORY_NODES = 5000
MOST_GROWTH, MOST_MEMORY = 1.05, 350
"""The exponent with which calls grow with the nodes, and MB of the largest process."""

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What was found with so many nodes.

    Attributes:
        ready: Seconds from the start of all processes until the gateway is ready.
        sent: Bytes that the gateway sends to its replicas, for each cycle.
        asked: All contenders, with all nodes named.
        memory: RSS and PSS of each process of Moorage, in MiB, after it all.
    """

    nodes: int
    ready: float
    sent: float
    asked: dict[str, Asked]
    memory: Mapping[str, tuple[float, float]]


async def measure(results: Results, directory: Path, progress: Callable[[str], None]) -> None:
    """Measure size by size; one that cannot be measured is noted and ends it."""
    sizes: list[Size] = []
    for nodes in SIZES[:1] if results.quick else SIZES:
        progress(f"growth: a cluster of {nodes} nodes")
        here = directory / f"growth-{nodes}"
        here.mkdir()
        async with opened(here, progress) as bench:
            try:
                sizes.append(await _measure_one(bench, nodes))
            except (NotReadyError, LoadError) as error:
                results.notes.append(f"growth, {nodes} nodes: {error}")
                break
    if sizes:
        report(results, sizes)


async def _measure_one(bench: Bench, nodes: int) -> Size:
    cluster = await bench.cluster(
        nodes, PODS_PER_NODE, heartbeats=nodes / HEARTBEAT_SECONDS, changed_pods=CHANGED_PODS
    )
    began = time.monotonic()
    stack = await bench.moorage(cluster.kubeconfig)
    ready = time.monotonic() - began
    found = await _contenders(bench, cluster, stack, nodes)
    question = Question(nodes=nodes, contenders=list(found), rounds=ROUNDS, seconds=SECONDS)
    before = await _sent_bytes(stack)
    load = Load(await bench.program(CLIENT))
    rounds = await load.run(question.job(cluster, found), lambda _: None)
    cycles = WARM_UP + len(rounds) // len(found)
    return Size(
        nodes=nodes,
        ready=ready,
        sent=(await _sent_bytes(stack) - before) / cycles,
        asked={one.contender: one for one in summed_up(question, rounds)},
        memory={name: memory(pid) for name, pid in stack.pids.items()},
    )


def report(results: Results, sizes: Sequence[Size]) -> None:
    """Add both tables, and the budgets."""
    names, processes = list(sizes[0].asked), list(sizes[0].memory)
    rows = []
    for size in sizes:
        cells = [
            f"{one.answered} ({one.processor:.1f})" if (one := size.asked.get(name)) else "-"
            for name in names
        ]
        rows.append((f"{size.nodes:,} nodes", f"{size.ready:.1f} s", f"{size.sent:,.0f}", *cells))
    results.tables += [
        Table(
            part=GROWTH,
            title="Growth, 30 pods on each node",
            caption="filter + prioritize of all nodes until answered: "
            "milliseconds, p50 / p99 (CPU)",
            head=("", "ready after", "bytes/cycle", *names),
            rows=rows,
        ),
        Table(
            part=GROWTH,
            title="Memory by cluster size",
            caption="MiB, RSS / PSS",
            head=("", *processes),
            rows=[
                (
                    f"{size.nodes:,} nodes, {PODS_PER_NODE * size.nodes:,} pods",
                    *(f"{rss:.0f} / {pss:.0f}" for rss, pss in size.memory.values()),
                )
                for size in sizes
            ],
        ),
    ]
    if len(sizes) > 1:
        nodes = [log(size.nodes) for size in sizes]
        slope = linear_regression(nodes, [log(s.asked[MAIN].answered.p50) for s in sizes]).slope
        work = "exponent of growth with the nodes; 1 is linear, the rest is for noise"
        results.verdicts.append(Verdict(part=GROWTH, work=work, limit=MOST_GROWTH, measured=slope))
    for size in sizes:
        if size.nodes == MEMORY_NODES:
            largest = max(pss for _, pss in size.memory.values()) * MIB / 1e6
            work = "memory of the largest process, 5,000 nodes with 150,000 pods"
            results.verdicts.append(
                Verdict(part=GROWTH, work=work, limit=MOST_MEMORY, measured=largest, unit="MB")
            )


def memory(pid: int) -> tuple[float, float]:
    """Return RSS and PSS of a process in MiB; the second one counts shared pages in part."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    amounts = dict(re.findall(r"^(Rss|Pss):\s+(\d+) kB", text, re.M))
    return int(amounts["Rss"]) / 1024, int(amounts["Pss"]) / 1024


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
