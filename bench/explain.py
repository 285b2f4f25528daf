"""How long `moorage explain` takes while a gateway keeps many decisions: `python -m bench.explain`.

A cluster of 5,000 nodes, each of which is named in every call; as many decisions as a gateway keeps
by default. The pods that are explained are decided before and after the others, so that some of
their decisions are the oldest ones. Exits with 1 if the median is above the budget.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import aiohttp
import click

from bench.edge.contenders import PLUGIN_FILES
from bench.figures import Figure, figure
from bench.processes import goprograms
from bench.processes.goprograms import CLIENT
from bench.processes.load import Contender, Job, Load
from bench.processes.objects import NAMESPACE, new_pod, node_name
from bench.processes.policies import policy, profile_name
from bench.processes.stacks import Cluster, Stack, opened
from cli.decisions.explain.sources import read
from cli.shared.gateway.options import GatewayOptions
from gateway.decisions.why import explanation

NODES, DECISIONS = 5000, 10_000
BUDGET = 100.0
"""Milliseconds for the answer."""

EXPLAINED = 10
"""Pods that are explained among the oldest, and among the newest."""

TIMES = 5
PROFILE = profile_name("batch", 3)


@click.command()
@click.option("--decisions", default=DECISIONS, show_default=True, help="How many are kept.")
@click.option("--nodes", default=NODES, show_default=True, help="Of the cluster, named each time.")
def main(decisions: int, nodes: int) -> None:
    """Measure, print, and exit with 1 if the budget is missed."""
    goprograms.build_all()
    with tempfile.TemporaryDirectory() as directory:
        kept = asyncio.run(_measure(Path(directory), decisions, nodes))
    sys.exit(0 if kept else 1)


async def _measure(directory: Path, decisions: int, nodes: int) -> bool:
    async with opened(directory, lambda text: print(text, file=sys.stderr)) as bench:
        cluster = await bench.cluster(nodes, 1)
        stack = await bench.moorage("moorage", cluster.kubeconfig, policy(), plugins=PLUGIN_FILES)
        oldest = [f"oldest-{number}" for number in range(EXPLAINED)]
        newest = [f"newest-{number}" for number in range(EXPLAINED)]
        await _decide(cluster, stack, oldest, nodes)
        contender = Contender("moorage", stack.addresses.extender, PROFILE)
        rounds = decisions - 2 * EXPLAINED
        job = Job(api=cluster.api, contenders=[contender], nodes=nodes, rounds=rounds, warm_up=0)
        await Load(await bench.program(CLIENT)).run(job, lambda _: None)
        await _decide(cluster, stack, newest, nodes)
        options = GatewayOptions(admin=stack.addresses.admin, kubeconfig=cluster.kubeconfig)
        print(_line("the gateway's answer", await _answers(options.admin, oldest + newest)))
        kept = await _show(f"an old one of {decisions} decisions", oldest, options)
        kept &= await _show(f"a new one of {decisions} decisions", newest, options)
        kept &= await _show("the same about one node", newest, options, node_name(nodes // 2))
        command = [str(Path(sys.executable).with_name("moorage")), "explain"]
        where = (f"--admin={options.admin}", f"--kubeconfig={options.kubeconfig}")
        print(_line("the whole command", await _commands([*command, *where], newest)))
    return kept


async def _decide(cluster: Cluster, stack: Stack, names: Iterable[str], nodes: int) -> None:
    """Create pods, and have them decided."""
    pods = f"{cluster.api}/api/v1/namespaces/{NAMESPACE}/pods"
    everywhere = [node_name(index) for index in range(nodes)]
    async with aiohttp.ClientSession() as session:
        for name in names:
            pod = new_pod()
            pod["metadata"] = {"name": name, "namespace": NAMESPACE}
            pod["spec"]["schedulerName"] = PROFILE
            async with session.post(pods, json=pod) as response:
                assert response.status == 201, await response.text()
                created = await response.json()
            asked = {"Pod": created, "NodeNames": everywhere}
            for verb in ("filter", "prioritize"):
                url = f"{stack.addresses.extender}/{verb}"
                async with session.post(url, json=asked) as response:
                    assert response.status == 200, await response.text()


async def _show(what: str, names: Iterable[str], options: GatewayOptions, node: str = "") -> bool:
    taken, processor = [], time.process_time()
    for name in list(names) * TIMES:
        began = time.perf_counter()
        known = await read(f"{NAMESPACE}/{name}", node, options)
        headline = explanation(known).headline
        taken.append((time.perf_counter() - began) * 1000)
        assert known.attempts, headline
    mean = (time.process_time() - processor) / len(taken) * 1000
    print(f"{_line(what, figure(taken))}, {mean:.1f} ms of them processor time")
    return figure(taken).p50 <= BUDGET


async def _answers(admin: str, names: Iterable[str]) -> Figure:
    taken = []
    async with aiohttp.ClientSession() as session:
        for name in list(names) * TIMES:
            began = time.perf_counter()
            async with session.get(f"{admin}/decisions/{NAMESPACE}/{name}") as response:
                assert response.status == 200, await response.text()
                await response.read()
            taken.append((time.perf_counter() - began) * 1000)
    return figure(taken)


async def _commands(command: list[str], names: Iterable[str]) -> Figure:
    taken = []
    for name in names:
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *command, f"{NAMESPACE}/{name}", stdout=subprocess.DEVNULL
        )
        assert await process.wait() == 0
        taken.append((time.perf_counter() - began) * 1000)
    return figure(taken)


def _line(what: str, taken: Figure) -> str:
    return f"{what}: p50 {taken.p50:.1f} ms, p99 {taken.p99:.1f} ms, {taken.count} times"


if __name__ == "__main__":
    main()
