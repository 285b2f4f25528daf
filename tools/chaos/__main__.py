"""Breaks a running Moorage in every way that is known, and judges it by the API server's audit log.

python -m tools.chaos [--full] [--minutes N] [--seed N] [--only TEXT] [--result FILE]
python -m tools.chaos --publish FILE
"""

import argparse
import asyncio
import itertools
import math
import random
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from moorage_host.kube import connect
from tools.chaos import clocks
from tools.chaos.campaign import Campaign, Outcome
from tools.chaos.faults import Draw, Extent
from tools.chaos.oracle import AuditReader
from tools.chaos.report import publish, rows, save, text
from tools.chaos.schedule import (
    CERTIFICATES,
    CLOCKS,
    ELECTED,
    IN_TURN,
    ONE_GATEWAY,
    ONLY_FULL,
    REAL,
    TWO_BINDERS,
    TWO_FILTERS,
    Round,
    rounds,
)
from tools.chaos.stack import PROFILES, Layout, Stack
from tools.planes.embedded import EmbeddedPlane, Plane
from tools.planes.real import RealPlane

LAYOUTS: Mapping[Layout, Mapping[str, Draw]] = {
    "one gateway": ONE_GATEWAY,
    "two filters": TWO_FILTERS,
    "two binders": TWO_BINDERS,
    "certificates": CERTIFICATES,
    "in turn": IN_TURN,
    "elected": ELECTED,
    "clocks": CLOCKS,
}

ON_REAL: Mapping[Layout, Mapping[str, Draw]] = {"one gateway": REAL}

SHORT = Extent()
FULL = Extent(seconds=10.0, rate=20.0, longest=20.0, slowest=4.0)


def main() -> None:
    """Run a campaign; end with 1 if a rule was broken."""
    options = _options()
    if options.publish:
        publish(options.publish)
        return
    print(f"seed {options.seed}; the same again: make chaos SEED={options.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="moorage-chaos-"))
    begun = time.monotonic()
    outcomes = asyncio.run(_campaign(options, directory))
    took = time.monotonic() - begun
    table = rows(outcomes)
    print(f"\n{text(table)}\n{took:.0f} s")
    if options.result:
        plane, extent = "real" if options.real else "embedded", ", FULL=1" if options.full else ""
        about = f"Seed {options.seed}{extent}, {took / 60:.0f} minutes."
        save(options.result, table, plane, about)
    failed = [each for each in outcomes if each.problems]
    for each in failed:
        print(f"\nround {each.round.number}, {each.round.row}:", *each.problems, sep="\n  ")
        print("  injected:", *each.round.injections, sep="\n    ")
    if failed:
        print(f"\nlogs: {directory}\nthe same again: make chaos SEED={options.seed}")
    sys.exit(bool(failed))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.chaos", description=__doc__)
    parser.add_argument("--full", action="store_true", help="longer faults, until the time is over")
    parser.add_argument(
        "--minutes",
        type=float,
        default=60.0,
        help="how long a full campaign is, at least once through all rows",
    )
    parser.add_argument("--seed", type=int, default=None, help="what the schedule is drawn from")
    parser.add_argument("--only", default="", help="only rows whose name matches this expression")
    parser.add_argument("--rounds", type=int, default=1, help="rounds of each row, if not --full")
    parser.add_argument("--real", action="store_true", help="on kube-apiserver, etcd and the rest")
    parser.add_argument("--result", type=Path, help="write the table into this file")
    parser.add_argument("--publish", type=Path, help="put such a file on the page and into README")
    parser.add_argument("--fail-fast", action="store_true", help="end with the first failure")
    options = parser.parse_args()
    if options.result and options.only:
        parser.error("--result takes no --only: a table on the page comes from one run")
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    return options


def _is_chosen(options: argparse.Namespace, row: str) -> bool:
    """Whether a row is run: all with --full, those of a name, or those of the short form."""
    if options.only or options.full or options.real:
        return bool(re.search(options.only, row))
    return row not in ONLY_FULL


def _schedule(
    options: argparse.Namespace, table: Mapping[str, Draw], chosen: Collection[str], minutes: float
) -> Iterator[Round]:
    """Yield the rounds of the *chosen* rows; those of a full campaign until its time is over."""
    end = time.monotonic() + 60 * minutes if options.full else math.inf
    for again in range(options.rounds) if not options.full else itertools.count():
        extent = FULL if options.full else SHORT
        for each in rounds(options.seed, extent, table, again * len(table)):
            if again and time.monotonic() > end:
                return  # each row has had a round
            if each.row in chosen:
                yield each


async def _campaign(options: argparse.Namespace, directory: Path) -> Sequence[Outcome]:
    """Run the rounds of each layout, one layout after another."""
    outcomes: list[Outcome] = []
    layouts = ON_REAL if options.real else LAYOUTS
    for layout, table in layouts.items():
        chosen = {row for row in table if _is_chosen(options, row)}
        if chosen and layout == "clocks" and clocks.library() is None:
            print("left out, as libfaketime is missing (apt-get install faketime):", *chosen)
            continue
        if chosen and not (options.fail_fast and any(each.problems for each in outcomes)):
            place = directory / layout.replace(" ", "-")
            place.mkdir()
            share = options.minutes * len(chosen) / sum(map(len, layouts.values()))
            schedule = _schedule(options, table, chosen, share)
            outcomes += [outcome async for outcome in _rounds(options, place, layout, schedule)]
    return outcomes


async def _rounds(
    options: argparse.Namespace, directory: Path, layout: Layout, schedule: Iterator[Round]
) -> AsyncIterator[Outcome]:
    async with AsyncExitStack() as opened:
        plane: Plane = (
            RealPlane(directory, profiles=PROFILES) if options.real else EmbeddedPlane(directory)
        )
        stack = Stack(plane, layout)
        await stack.start(opened)
        client = await connect(plane.kubeconfig("admin"))
        opened.push_async_callback(client.close)
        session = await opened.enter_async_context(aiohttp.ClientSession())
        campaign = Campaign(stack, client, session, AuditReader(plane.audit_log))
        await campaign.prepare()
        for each in schedule:
            begun = time.monotonic()
            outcome = await campaign.run(each)
            _progress(outcome, time.monotonic() - begun)
            yield outcome
            if outcome.problems and options.fail_fast:
                return


def _progress(outcome: Outcome, seconds: float) -> None:
    verdict, problems = outcome.verdict, outcome.problems
    end = "; ".join(problems[:2]) if problems else "right"
    row = outcome.round.row
    print(f"{row:42} {seconds:5.1f} s {verdict.bound:3} bound, {end}", flush=True)


if __name__ == "__main__":
    main()
