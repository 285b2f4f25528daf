"""Gateways that keep a journal, traffic for them, and replays of it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cli.config.policies import load_registries
from cli.whatif.engines import filtered, scored
from gateway.journal.segments import find_segments, read_segment
from gateway.whatif.replay import Engines, Replay
from gateway.whatif.replay_report import Report
from moorage.v1 import journal_pb2 as pb
from tools.inprocess.gateway import Gateway, filter_service, gateway, pod, ready, scorer_service
from tools.waiting import until


@asynccontextmanager
async def recording(
    directory: Path, journal: Path, *, works: bool = True, **more: Any
) -> AsyncIterator[Gateway]:
    """Run a gateway with a journal, and services with the built-in plugins.

    Unless it cannot work, the journal has begun.
    """
    async with (
        filter_service() as filters,
        scorer_service() as scorer,
        gateway(
            directory,
            filters=filters,
            scorer=scorer,
            journal=journal,
            **{"journal_retry_interval": 0.2, **more},
        ) as running,
    ):
        await ready(running)
        if works:
            await until(lambda: running.sample("moorage_journal_records_total", type="state") >= 2)
        yield running


async def schedule(running: Gateway, name: str, nodes: Sequence[str], cpu: str = "100m") -> str:
    """Filter and prioritize a pod, and put it on the best node, as kube-scheduler would."""
    requests = {"resources": {"requests": {"cpu": cpu}}}
    obj = pod(name, containers=[{"name": "c", "image": "i", "env": SECRET_ENV, **requests}])
    obj["metadata"]["annotations"] = {"example.com/token": "s3cret", "moorage.io/kept": "yes"}
    answer = await running.filter(obj, *nodes)
    feasible = answer["NodeNames"] or []
    best = feasible[0] if feasible else ""
    if len(feasible) > 1:
        scores = await running.prioritize(obj, *feasible)
        best = max(scores, key=lambda each: each["Score"])["Host"]
    if best:
        running.api.pod(name, **{**obj["spec"], "nodeName": best})
    return best


SECRET_ENV = [{"name": "PASSWORD", "value": "s3cret"}]


def replay(journal: Path) -> Report:
    """Replay a journal with the recorded policy."""
    engines = Engines(registries=load_registries(()), filter=filtered, score=scored)
    return asyncio.run(Replay(journal, engines, examples=3).run(None, lambda _: None))


def records(journal: Path) -> list[pb.JournalRecord]:
    """Return all records of a journal."""
    return [record for path in find_segments(journal) for _, record in read_segment(path)]
