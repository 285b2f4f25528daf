"""Asks one replica, and a further one whenever one is slow or lost; the first answer counts.

Work is never cancelled: a replica that is slow counts as busy until it has answered.
"""

import asyncio
from collections.abc import Collection, Hashable
from typing import Any

import msgspec

from gateway.cycle import ANSWER_SECONDS, CallFailedError, Cycle
from gateway.cycle.nodes import NodeRows
from gateway.replicas.session import Part
from gateway.replicas.set import SILENT, Member, ReplicaSet, VersionGoneError
from moorage.v1.replica_pb2 import CycleResult
from moorage_host.rpc.stream import StreamLostError

Sent = dict[asyncio.Future[Any], tuple[Member, NodeRows, float]]
"""Answers to come, with who owes them, about which rows, and since when."""


class ReplicaAnswer(msgspec.Struct, frozen=True, eq=False):
    """What a replica with this version of plugins answered about some rows."""

    result: CycleResult
    rows: NodeRows
    version: str


async def ask(replicas: ReplicaSet, cycle: Cycle, part: Part) -> ReplicaAnswer:
    """Return the first answer to what is asked about a cycle, if it is no failure.

    Raises:
        CallFailedError: No replica answers in time, or the answer is a failure.
        VersionGoneError: None has the version that the part is for.
    """
    loop, latency = asyncio.get_running_loop(), replicas.latency
    deadline, version = cycle.deadline - ANSWER_SECONDS, part.version
    latency_key = (cycle.profile, cycle.plugin, part.stage)
    sent: Sent = {}
    again = ""
    suspects, metadata = replicas.crash_suspects, cycle.pod.metadata
    owner = metadata.namespace, metadata.name
    while True:
        # The next one may end like those that were lost.
        if not sent and suspects.lost_replicas and (why := await suspects.doubt(owner, deadline)):
            raise CallFailedError(f"{replicas.name} service: {why}")
        if not sent and again and loop.time() >= deadline:
            raise CallFailedError(f"{replicas.name} service {SILENT}")
        if not sent and again and version and owner in suspects.pods:
            raise VersionGoneError("one replica at a time gets a pod that may crash it")
        if sent:
            others = _others(replicas, sent, version)
            member = next((other for other in others if not other.unanswered), None)
        else:
            member = replicas.next(version) or await replicas.until_next(deadline, version)
        if member is not None:
            if suspects.pods:
                part.refused = suspects.refusals(owner, member.session.version)
                if "" in part.refused:  # it is not known which plugin crashes replicas
                    raise CallFailedError(f"{replicas.name} service: {part.refused['']}")
            if again:
                replicas.metrics.resent["lost" if again == "lost" else "slow"]()
            try:
                start = loop.time()
                answer, about = member.session.start(cycle, part, deadline)
            except StreamLostError as broken:
                replicas.mark_lost(member.place, member.session, str(broken))
            else:
                sent[answer] = member, about, start
                member.unanswered[answer] = owner, start
                answer.add_done_callback(member.on_end)
        ended: Collection[asyncio.Future[Any]] = ()
        is_only = len(replicas.all) == 1 and member is replicas.all[0]
        # That of a pod that crashes replicas may be slow because it is about to end.
        if sent and (is_only or owner in suspects.pods):
            ended, _ = await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
        elif sent:
            ended = await _first_ended(replicas, sent, part, latency_key, deadline)
        for answer in ended:
            member, about, start = sent.pop(answer)
            error = answer.exception()
            if error is None:
                result = answer.result().result
                if result.status.code:
                    raise CallFailedError(f"{replicas.name} service: {result.status.message}")
                if not is_only:
                    latency.observe(latency_key, part.size, loop.time() - start)
                return ReplicaAnswer(result, about, member.session.version)
            if isinstance(error, TimeoutError):
                raise CallFailedError(f"{replicas.name} service {SILENT}") from error
            if not isinstance(error, StreamLostError):  # its loss is noted already
                raise error
        again = "lost" if ended or not sent else "slow"


def _others(replicas: ReplicaSet, sent: Sent, version: str) -> list[Member]:
    """Return the replicas with a version of plugins that have not been asked."""
    asked = [member for member, _, _ in sent.values()]
    return [
        each for each in replicas.all if each not in asked and version in ("", each.session.version)
    ]


async def _first_ended(
    replicas: ReplicaSet,
    sent: Sent,
    part: Part,
    latency_key: Hashable,
    deadline: float,
) -> Collection[asyncio.Future[Any]]:
    """Wait for an answer or a loss, but only for the hedge delay; return what has ended."""
    first = asyncio.FIRST_COMPLETED
    if not _others(replicas, sent, part.version):
        return (await asyncio.wait(sent, return_when=first))[0]
    ended, _ = await asyncio.wait(sent, return_when=first, timeout=replicas.latency.floor)
    if not ended:
        remaining = deadline - asyncio.get_running_loop().time()
        delay = replicas.latency.hedge_delay(latency_key, part.size, remaining)
        delay -= replicas.latency.floor
        ended, _ = await asyncio.wait(sent, return_when=first, timeout=max(delay, 0))
    return ended
