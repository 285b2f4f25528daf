"""Runs the bench: `make bench`, `make bench-quick`, or python -m bench --help."""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.status import Status

from bench import cluster, cost, edge, growth, peers, report
from bench.peers import Checkouts
from bench.processes import goprograms
from bench.processes.control_plane import is_built
from bench.report import CLUSTER, COST, EDGE, GROWTH, PARTS, PEERS, Results, machine
from tools import build

NOT_BUILT = (
    "what needs a control plane is left out: its programs are not built. "
    "`python -m tools.build` builds them, and so does `python -m bench cluster`"
)

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
LINE_SECONDS = 10.0  # between lines of progress where there is no terminal

Progress = Callable[[str], None]


@click.command()
@click.option("--quick", is_flag=True, help="Few rounds; without PARTS the edge only, in 90 s.")
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option("--topolvm", type=FOLDER, help="A checkout of TopoLVM, for the part peers.")
@click.option("--gpushare", type=FOLDER, help="One of gpushare-scheduler-extender.")
def main(
    quick: bool,
    parts: tuple[str, ...],
    topolvm: Path | None,
    gpushare: Path | None,
) -> None:
    """Measure Moorage beside Go extenders; exit with 1 if a budget is missed.

    Only PARTS, if there are any, else all but peers. The programs of the control plane
    are built if a part that needs them is named.
    """
    console = Console(stderr=True)
    results = Results(machine=machine(), quick=quick)
    wanted = parts or ((EDGE,) if quick else PARTS[: PARTS.index(PEERS)])
    if not parts and not is_built():
        wanted = tuple(part for part in wanted if part != CLUSTER)
        results.notes += [] if quick else [NOT_BUILT]
    try:
        if wanted != (COST,):
            goprograms.build_all()
    except build.BuildError as error:
        raise click.ClickException(str(error)) from error
    asyncio.run(_run(results, wanted, Checkouts(topolvm=topolvm, gpushare=gpushare), console))
    report.show(results, Console())
    sys.exit(0 if all(verdict.kept for verdict in results.verdicts) else 1)


async def _run(
    results: Results, wanted: Sequence[str], checkouts: Checkouts, console: Console
) -> None:
    measures: Mapping[str, Callable[[Results, Path, Progress], Awaitable[None]]] = {
        COST: cost.measure,
        EDGE: edge.measure,
        CLUSTER: cluster.measure,
        GROWTH: growth.measure,
        PEERS: partial(peers.measure, checkouts),
    }
    with console.status("Starting ...") as status, tempfile.TemporaryDirectory() as name:
        for part in PARTS:
            if part in wanted:
                directory = Path(name) / part
                directory.mkdir()
                await measures[part](results, directory, _Progress(console, status))
                report.write(results)  # in case that a later part fails


class _Progress:
    """Shows what is being measured: in one line of a terminal, elsewhere in occasional lines."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console = console
        self._status = status
        self._last = 0.0

    def __call__(self, text: str) -> None:
        if self._console.is_terminal:
            self._status.update(text)
        elif time.monotonic() - self._last > LINE_SECONDS:
            self._last = time.monotonic()
            self._console.print(text)


if __name__ == "__main__":
    main()
