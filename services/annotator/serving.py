"""Runs the annotator: one round and its result, or rounds until a signal, with an admin port.

A failure in a round is logged and counted, and the annotations stay as they are: their
time shows that they are old. The next round starts sooner, also if a single node was not written.
"""

import asyncio
import math
import random
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import NoReturn

import structlog

from moorage.backoff import Backoff
from moorage.errors import MoorageError
from moorage.units.durations import format_duration
from moorage_host.kube import connect
from moorage_host.process.admin import admin_server
from moorage_host.process.lifecycle import announce, process
from moorage_host.process.logs import configure_logging
from moorage_host.tls.security import securing
from services.annotator.planning import Need, Planned, WriteResult
from services.annotator.rounds import LAST_SUCCESS, NODES, ROUNDS, Annotator, NodeClient, Round
from services.annotator.settings import AnnotatorSettings

GIB = 1024**3


def report(ended: Round, settings: AnnotatorSettings) -> Iterator[str]:
    """Yield a line for each node, and the sum."""
    width = max((len(each.node) for each in ended.nodes), default=0)
    for each in ended.nodes:
        cpu, memory = (_amount(each, settings.prefix, name) for name in ("cpu", "memory"))
        result = _result(each, dry_run=settings.dry_run)
        yield f"{each.node:{width}}  cpu {cpu:12}  memory {memory:16}  {result}"
    if ended.unknown_nodes:
        yield (
            f"Prometheus measures {len(ended.unknown_nodes)} nodes that the cluster does not have, "
            f"such as {ended.unknown_nodes[0]}"
        )
    work = sum(each.need.is_work for each in ended.nodes)
    written = f"{work} of {len(ended.nodes)} nodes to be written"
    if not settings.dry_run:
        written = f"{ended.count(WriteResult.WRITTEN)} of {len(ended.nodes)} nodes written"
    others = (Need.NOT_MEASURED, WriteResult.GONE, WriteResult.FAILED)
    counts = (f"{count} {what}" for what in others if (count := ended.count(what)))
    yield ", ".join((written, f"{ended.count(Need.NONE)} unchanged", *counts))


def _amount(each: Planned, prefix: str, resource: str) -> str:
    names = (f"{prefix}{form}-free-{resource}" for form in ("mean", "std"))
    found = [text for name in names if (text := each.annotations[name]) is not None]
    if resource == "memory":
        return " ±".join(f"{float(text) / GIB:.2f}Gi" for text in found) or "-"
    return " ±".join(f"{text}m" for text in found) or "-"


def _result(each: Planned, *, dry_run: bool) -> str:
    age = "" if math.isnan(each.age) else f", {format_duration(round(each.age))} old"
    if not each.need.is_work:
        return f"{each.need}{age}"
    if each.result is WriteResult.FAILED:
        return f"failed: {each.problem}"
    if each.result is WriteResult.GONE:
        return "gone: it was deleted meanwhile"
    return f"{'would be written' if dry_run else 'written'}: {each.need}"


READY_ROUNDS = 3
"""How many intervals may pass without a good round before the process is not ready."""

FIRST_BACKOFF = 1.0
"""The longest wait after the first failed round, in seconds."""

_log = structlog.get_logger()


async def annotate_once(settings: AnnotatorSettings) -> None:
    """Run one round and write a line for each node to stdout.

    Raises:
        SystemExit: With code 1, since a node could not be written, or with what went wrong.
    """
    configure_logging(settings.log_level, settings.log_format)
    try:
        async with _annotator(settings) as annotator:
            ended = await annotator.round(dry_run=settings.dry_run)
    except (MoorageError, TimeoutError) as error:
        raise SystemExit(f"moorage annotator: {error}") from error
    sys.stdout.writelines(f"{line}\n" for line in report(ended, settings))
    if ended.count(WriteResult.FAILED):
        raise SystemExit(1)


async def serve(settings: AnnotatorSettings) -> None:
    """Run rounds until SIGTERM or SIGINT; announce on stdout as JSON when it begins.

    Raises:
        SystemExit: The user must change something; what it is, is on stderr in one line.
    """
    with process("annotator", settings) as stop:
        async with _annotator(settings) as annotator:
            rounds = Rounds(annotator, settings.interval)
            async with (
                securing(settings) as security,
                admin_server(
                    settings,
                    checks={"rounds": rounds.problem},
                    notes={"tls": security.note},
                    security=security,
                ) as admin,
                asyncio.TaskGroup() as group,
            ):
                announce("serving", service="annotator", admin=admin)
                running = group.create_task(rounds.run())
                await stop.wait()
                _log.info("The annotator stops.")
                running.cancel()


class Rounds:
    """Round after round, however each goes.

    Args:
        annotator: Who runs one.
        interval: From the start of one to the start of the next, in seconds.
    """

    def __init__(self, annotator: Annotator, interval: float) -> None:
        self._annotator = annotator
        self._interval = interval
        self._succeeded = -math.inf
        self._problem = "no round has ended yet"

    def problem(self) -> str | None:
        """Return what is wrong if there was no good round for too long."""
        if time.monotonic() - self._succeeded <= READY_ROUNDS * self._interval:
            return None
        return self._problem or "the latest round takes too long"

    async def run(self) -> NoReturn:
        """Run rounds until cancelled."""
        backoff = Backoff(min(FIRST_BACKOFF, self._interval), self._interval)
        while True:
            began = time.monotonic()
            if await self._round():
                backoff.reset()
                wait = self._interval * random.uniform(0.95, 1) - (time.monotonic() - began)
            else:
                wait = backoff.next()
            await asyncio.sleep(max(wait, 0))

    async def _round(self) -> bool:
        """Run a round; return whether the next one has time."""
        try:
            ended = await self._annotator.round()
        except (MoorageError, TimeoutError) as error:
            return self._failed(str(error))
        _show(ended)
        if ended.failure:
            return self._failed(ended.failure)
        if self._problem:
            _log.info("Nodes are annotated.", nodes=len(ended.nodes))
        ROUNDS.labels("ok").inc()
        LAST_SUCCESS.set_to_current_time()
        self._succeeded, self._problem = time.monotonic(), ""
        return not ended.count(WriteResult.FAILED)

    def _failed(self, problem: str) -> bool:
        ROUNDS.labels("failed").inc()
        if problem != self._problem:
            _log.warning("A round failed; annotations stay as they are.", problem=problem)
        self._problem = problem
        return False


def _show(ended: Round) -> None:
    failed, unmeasured = ended.count(WriteResult.FAILED), ended.count(Need.NOT_MEASURED)
    NODES.labels("failed").set(failed)
    NODES.labels("unmeasured").set(unmeasured)
    NODES.labels("measured").set(len(ended.nodes) - unmeasured)
    for done in ended.nodes:
        if done.result is WriteResult.FAILED:
            _log.warning("A node was not written.", node=done.node, problem=done.problem)


@asynccontextmanager
async def _annotator(settings: AnnotatorSettings) -> AsyncIterator[Annotator]:
    client = await connect(settings.kubeconfig)
    try:
        yield Annotator(settings, NodeClient(client, settings.request_timeout))
    finally:
        await client.close()
