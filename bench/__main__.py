"""Runs the bench: `make bench`, `make bench-quick`, or python -m bench --help."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.status import Status

from bench import budgets, edge, plan, report
from bench.contenders import opened
from bench.machine import machine
from bench.results import Results

TOLD_EVERY = 10.0  # seconds between lines of progress where there is no terminal


@click.command()
@click.option("--quick", is_flag=True, help="The edge only, a few rounds: less than 90 s.")
def main(quick: bool) -> None:
    """Measure Moorage beside Go extenders; exit with 1 if a budget is missed."""
    console = Console(stderr=True)
    results = Results(machine=machine(), quick=quick)
    began = time.monotonic()
    asyncio.run(_run(results, console))
    results.seconds = time.monotonic() - began
    results.verdicts = list(budgets.verdicts(results))
    report.write(results)
    report.show(results, Console())
    sys.exit(0 if budgets.kept(results.verdicts) else 1)


async def _run(results: Results, console: Console) -> None:
    with console.status("Starting ...") as status, tempfile.TemporaryDirectory() as directory:
        say = _Teller(console, status)
        async with opened(Path(directory), say) as bench:
            pods = plan.QUICK_PODS_PER_NODE if results.quick else plan.PODS_PER_NODE
            say(f"a cluster of {edge.CLUSTER_NODES} nodes with {pods} pods each")
            cluster = await bench.cluster(edge.CLUSTER_NODES, pods)
            found = await edge.contenders(bench, cluster, quick=results.quick)
            questions = plan.quick_questions() if results.quick else plan.questions(list(found))
            results.edge += await edge.measure(bench, cluster, questions, found, say)
    if results.quick:
        results.notes.append("quick: few rounds, few pods; the cluster and growth are left out")


class _Teller:
    """Tells people what happens: in one line of a terminal, elsewhere in lines now and then."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console = console
        self._status = status
        self._told = 0.0

    def __call__(self, text: str) -> None:
        if self._console.is_terminal:
            self._status.update(text)
        elif time.monotonic() - self._told > TOLD_EVERY:
            self._told = time.monotonic()
            self._console.print(text)


if __name__ == "__main__":
    main()
