"""Runs the phases of a shadow: the replicas that idle are asked, and nobody waits for the answer.

A replica is asked about the same state as in the live cycle, or not at all. Nothing is cached,
hedged, tried again or given up, and of what plugins claim or keep nothing is taken over.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from gateway.cycle import Cycle
from gateway.cycle.nodes import NodeRows
from gateway.replicas.filters import NonsenseError
from gateway.replicas.kinds import Part
from gateway.replicas.set import Member, ReplicaSet
from moorage_host.policy import shadow_of
from moorage_host.rpc.stream import StreamLostError

AnswerT = TypeVar("AnswerT")


class StateChangedError(Exception):
    """No replica that idles can show the state of the live cycle any more, with its plugins."""


class ShadowFailedError(Exception):
    """A shadow gives no answer; the message says why, always the same for the same cause.

    Attributes:
        costly: Whether it took a replica from the live cycles, for a time or for good.
    """

    def __init__(self, problem: str, *, costly: bool = False) -> None:
        super().__init__(problem)
        self.costly = costly


async def ask(
    replicas: ReplicaSet,
    read: Callable[[Any, NodeRows, str, Callable[[], object]], AnswerT],
    cycle: Cycle,
    rows: NodeRows,
    generation: int,
    seconds: float,
) -> AnswerT:
    """Return what a shadow answers about *rows*, in the state of *generation*.

    Args:
        replicas: Those of the service that is asked.
        read: Reads its answer.
        cycle: The live cycle.
        rows: The rows that the nodes have now.
        generation: The state.
        seconds: How long the answer may take.

    Raises:
        StateChangedError: No replica can serve that state.
        ShadowFailedError: No right answer comes in time.
    """
    member, name = _idle(replicas, generation), replicas.name
    part = Part(nodes=cycle.nodes, size=rows.count, rows=rows, profile=shadow_of(cycle.profile))
    deadline = asyncio.get_running_loop().time() + seconds
    try:
        answer, _ = member.session.start(cycle, part, deadline, generation)
        member.unanswered.add(answer)
        answer.add_done_callback(member.unanswered.discard)
        result = (await answer).result
    except TimeoutError as error:
        problem = f"the {name} service does not answer in time"
        raise ShadowFailedError(problem, costly=True) from error
    except StreamLostError as error:
        raise ShadowFailedError(f"a {name} replica is lost", costly=True) from error
    if result.status.code:
        raise ShadowFailedError(result.status.message)
    for report in result.plugins:
        if report.failure:
            raise ShadowFailedError(f"plugin {report.plugin}: {report.failure}")
    try:
        return read(result, rows, "", replicas.metrics.invalid)
    except NonsenseError as error:
        raise ShadowFailedError(f"the {name} service answers nonsense") from error


def _idle(replicas: ReplicaSet, generation: int) -> Member:
    may_wait = replicas.share == "shadows"  # no cycle needs the replica
    if len({member.session.version for member in replicas.all}) == 1:  # else plugins may differ
        for member in replicas.all:
            is_idle = not member.unanswered and (may_wait or member.session.keeps_up)
            if is_idle and member.session.can_serve(generation):
                return member
    raise StateChangedError
