"""Runs the phases of a shadow: the replicas that idle are asked, and nobody waits for the answer.

A replica is asked about the same state as in the live cycle, or not at all. Nothing is cached,
hedged, tried again or given up, and of what plugins claim or keep nothing is taken over.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np

from gateway.calls import CycleRequest
from gateway.calls.node_set import NodeRows
from gateway.cycle.phases.phase import OK, fill_cycle
from gateway.cycle.phases.scoring import TOTALS, plugin_scores
from gateway.decisions.cycle import NodeScores
from gateway.decisions.verdicts import NodeVerdicts
from gateway.replicas.members import Member
from gateway.replicas.pool import ReplicaPool
from gateway.replicas.work import Work
from moorage_host.policy import shadow_of
from moorage_host.rpc.stream import StreamLostError


class StateChangedError(Exception):
    """No replica that idles can show the state of the live cycle any more, with its plugins."""


class ShadowFailedError(Exception):
    """A shadow gives no answer; the message says why, always the same for the same cause."""


class ShadowPhases:
    """Asks filter and scorer replicas."""

    def __init__(self, filters: ReplicaPool, scorers: ReplicaPool, timeout: float) -> None:
        """Give each answer *timeout* seconds."""
        self._filters = filters
        self._scorers = scorers
        self._timeout = timeout

    async def filter(self, request: CycleRequest, rows: NodeRows, generation: int) -> NodeVerdicts:
        """Return the shadow's verdicts on *rows*, in the state of *generation*.

        Raises:
            StateChangedError: No replica can show that state.
            ShadowFailedError: No right answer comes in time.
        """

        def fill(message: Any) -> None:
            _fill(message, request, rows)

        result = await self._ask(self._filters, request, rows, generation, fill)
        codes = np.frombuffer(result.verdicts, "<u2") if result.verdicts else None
        if codes is None:
            codes = np.zeros(rows.count, np.uint16)
        if len(codes) != rows.count or codes.max(initial=0) > len(result.reasons):
            raise ShadowFailedError("the filter service answers nonsense")
        return NodeVerdicts(bitmap=rows.bitmap, codes=codes, reasons=result.reasons)

    async def score(
        self, request: CycleRequest, rows: NodeRows, generation: int
    ) -> NodeScores | None:
        """Return the shadow's scores of *rows*; None if no plugin has an opinion; raises as above.

        Raises:
            StateChangedError: No replica can show that state.
            ShadowFailedError: No right answer comes in time.
        """

        def fill(message: Any) -> None:
            _fill(message, request, rows)
            message.all_scores = True

        result = await self._ask(self._scorers, request, rows, generation, fill)
        totals, plugins = np.frombuffer(result.totals, TOTALS), plugin_scores(result)
        if not len(totals):
            return None
        lengths = {len(totals), *(len(each.normalized) for each in plugins)}
        if lengths != {rows.count}:
            raise ShadowFailedError("the scorer service answers nonsense")
        return NodeScores(bitmap=rows.bitmap, generation=generation, totals=totals, plugins=plugins)

    async def _ask(
        self,
        pool: ReplicaPool,
        request: CycleRequest,
        rows: NodeRows,
        generation: int,
        fill: Callable[[Any], None],
    ) -> Any:
        member = _idle(pool, generation)
        work = Work(
            fill=fill,
            deadline=asyncio.get_running_loop().time() + self._timeout,
            sort=(shadow_of(request.profile), request.plugin),
            nodes=rows.count,
        )
        try:
            answer = member.session.start(work, generation).answer
            member.unanswered.add(answer)
            answer.add_done_callback(member.unanswered.discard)
            result = (await answer).result
        except TimeoutError as error:
            message = f"the {pool.kind.name} service does not answer in time"
            raise ShadowFailedError(message) from error
        except StreamLostError as error:
            raise ShadowFailedError(f"a {pool.kind.name} replica is lost") from error
        if result.status.code != OK:
            raise ShadowFailedError(result.status.message)
        for report in result.plugins:
            if report.failure:
                raise ShadowFailedError(f"plugin {report.plugin}: {report.failure}")
        return result


def _fill(message: Any, request: CycleRequest, rows: NodeRows) -> None:
    fill_cycle(message.cycle, request, rows)
    message.cycle.profile = shadow_of(request.profile)
    message.cycle.traceparent = ""  # the trace is that of the live cycle


def _idle(pool: ReplicaPool, generation: int) -> Member:
    members = pool.members.all
    if len({member.session.version for member in members}) == 1:  # else plugins may differ, too
        for member in members:
            if not member.unanswered and member.session.can_show(generation):
                return member
    raise StateChangedError
