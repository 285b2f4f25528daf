"""Runs the phases of a shadow: the replicas that idle are asked, and nobody waits for the answer.

A replica is asked about the same state as in the live cycle, or not at all. Nothing is cached,
hedged, tried again or given up, and of what plugins claim or keep nothing is taken over.
"""

import asyncio
from typing import Any

from gateway.cycle import Cycle
from gateway.cycle.nodes import NodeRows
from gateway.cycle.scores import Scores
from gateway.cycle.verdicts import Verdicts
from gateway.replicas import filters, scorers
from gateway.replicas.filters import NonsenseError
from gateway.replicas.kinds import Part
from gateway.replicas.set import Member, ReplicaSet
from moorage_host.policy import shadow_of
from moorage_host.rpc.stream import StreamLostError


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


class ShadowPhases:
    """Asks filter and scorer replicas."""

    def __init__(self, filters: ReplicaSet, scorers: ReplicaSet, timeout: float) -> None:
        """Give each answer *timeout* seconds."""
        self._filters = filters
        self._scorers = scorers
        self._timeout = timeout

    def rows(self, cycle: Cycle) -> NodeRows:
        """Return the rows that the nodes of a cycle have now."""
        return self._filters.feed.index.find(cycle.nodes)

    async def filter(self, cycle: Cycle, rows: NodeRows, generation: int) -> Verdicts:
        """Return the shadow's verdicts on *rows*, in the state of *generation*.

        Raises:
            StateChangedError: No replica can serve that state.
            ShadowFailedError: No right answer comes in time.
        """
        result = await self._ask(self._filters, cycle, rows, generation)
        try:
            return filters.read(result, rows, "", self._filters.metrics.invalid)
        except NonsenseError as error:
            raise ShadowFailedError("the filter service answers nonsense") from error

    async def score(self, cycle: Cycle, rows: NodeRows, generation: int) -> Scores | None:
        """Return the shadow's scores of *rows*; None if no plugin has an opinion.

        Raises:
            StateChangedError: No replica can serve that state.
            ShadowFailedError: No right answer comes in time.
        """
        result = await self._ask(self._scorers, cycle, rows, generation)
        try:
            scores = scorers.read(result, rows, "", self._scorers.metrics.invalid)
        except NonsenseError as error:
            raise ShadowFailedError("the scorer service answers nonsense") from error
        return scores if len(scores.totals) else None

    async def _ask(
        self, replicas: ReplicaSet, cycle: Cycle, rows: NodeRows, generation: int
    ) -> Any:
        member, name = _idle(replicas, generation), replicas.kind.name
        part = Part(nodes=cycle.nodes, size=rows.count, rows=rows, profile=shadow_of(cycle.profile))
        deadline = asyncio.get_running_loop().time() + self._timeout
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
        return result


def _idle(replicas: ReplicaSet, generation: int) -> Member:
    if len({member.session.version for member in replicas.all}) == 1:  # else plugins may differ
        for member in replicas.all:
            if not member.unanswered and member.session.can_serve(generation):
                return member
    raise StateChangedError
