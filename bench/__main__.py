"""Runs the bench: `make bench`, `make bench-quick`, or python -m bench --help."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.status import Status

from bench import budgets, cliffs, cluster, edge, goprograms, growth, plan, plots, replicas, report
from bench.contenders import opened
from bench.machine import machine
from bench.results import Results
from tests.e2e import build

PARTS = ("edge", "cluster", "growth", "cliffs", "replicas")
EDGE, CLUSTER, GROWTH, CLIFFS, REPLICAS = PARTS

NOT_BUILT = (
    "the cluster is left out: its programs are not built. `python -m tests.e2e.build` builds them, "
    "and so does `python -m bench cluster`"
)

TOLD_EVERY = 10.0  # seconds between lines of progress where there is no terminal


@click.command()
@click.option("--quick", is_flag=True, help="The edge only, a few rounds: less than 90 s.")
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option(
    "--largest", default=max(growth.SIZES), show_default=True, help="Nodes that growth goes up to."
)
def main(quick: bool, parts: tuple[str, ...], largest: int) -> None:
    """Measure Moorage beside Go extenders; exit with 1 if a budget is missed.

    Only PARTS, if there are any. The cluster's programs are built if it is named.
    """
    console = Console(stderr=True)
    results = Results(machine=machine(), quick=quick)
    wanted = parts or (PARTS[:1] if quick else PARTS)
    began = time.monotonic()
    try:
        goprograms.build_all()
    except build.BuildError as error:
        raise click.ClickException(str(error)) from error
    asyncio.run(_run(results, wanted, asked_for=bool(parts), largest=largest, console=console))
    results.seconds = time.monotonic() - began
    results.verdicts = list(budgets.verdicts(results))
    report.write(results)
    plots.draw_all(results)
    report.show(results, Console())
    sys.exit(0 if budgets.kept(results.verdicts) else 1)


async def _run(
    results: Results, parts: Sequence[str], *, asked_for: bool, largest: int, console: Console
) -> None:
    with console.status("Starting ...") as status, tempfile.TemporaryDirectory() as name:
        say, directory = _Teller(console, status), Path(name)
        if EDGE in parts:
            await _edge(results, _folder(directory, EDGE), say)
            report.write(results)  # should the rest fail
        if CLUSTER in parts:
            if asked_for or cluster.built():
                await cluster.measure(results, _folder(directory, CLUSTER), say)
                report.write(results)
            else:
                results.notes.append(NOT_BUILT)
        if GROWTH in parts:
            sizes = [size for size in growth.SIZES if size <= largest]
            here = _folder(directory, GROWTH)
            await growth.measure(results, sizes, here, say, lambda: report.write(results))
        if CLIFFS in parts:
            await cliffs.measure(results, _folder(directory, CLIFFS), say)
            report.write(results)
        if REPLICAS in parts:
            await replicas.measure(results, _folder(directory, REPLICAS), say)


async def _edge(results: Results, directory: Path, say: Callable[[str], None]) -> None:
    async with opened(directory, say) as bench:
        pods = plan.QUICK_PODS_PER_NODE if results.quick else plan.PODS_PER_NODE
        say(f"a cluster of {edge.CLUSTER_NODES} nodes with {pods} pods each")
        nodes = await bench.cluster(edge.CLUSTER_NODES, pods)
        found = await edge.contenders(bench, nodes, quick=results.quick)
        questions = plan.quick_questions() if results.quick else plan.questions(list(found))
        results.edge += await edge.measure(bench, nodes, questions, found, say)


def _folder(directory: Path, name: str) -> Path:
    made = directory / name
    made.mkdir()
    return made


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
