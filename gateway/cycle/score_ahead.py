"""Scores nodes as soon as they are filtered, before kube-scheduler asks; a part of the cycle.

Scoring goes on after the filter phase, while kube-scheduler does its own. `prioritize` collects the
scores.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from gateway.calls import CycleRequest, NodeSet, PrioritizeOutcome
from gateway.cycle.phases.phase import Phase
from gateway.cycle.phases.scoring import ScorePhaseResult
from gateway.decisions.cycle import SchedulingCycle
from gateway.decisions.cycle_states import CycleStates
from gateway.policy.policy import PolicyHolder

UNCOLLECTED_LIMIT = 256
"""Pods whose scores wait for a prioritize call; it may never come."""


class AheadScores(msgspec.Struct, kw_only=True, eq=False):
    """The scores of a pod's feasible nodes, on their way; normalised for exactly these nodes."""

    request: CycleRequest
    task: "asyncio.Task[ScorePhaseResult]"
    outcome: "asyncio.Future[PrioritizeOutcome]"

    def are_for(self, request: CycleRequest) -> bool:
        """Whether a prioritize call asks for these scores, in the same attempt.

        kube-scheduler asks within the time limit of the filter call, or its attempt has ended.
        """
        in_time = asyncio.get_running_loop().time() < self.request.deadline
        return in_time and not request.plugin and self.request.nodes.same_nodes(request.nodes)

    async def collect(self, request: CycleRequest) -> PrioritizeOutcome:
        """Return the scores in the order of the request."""
        outcome = await asyncio.shield(self.outcome)
        scored, asked = self.request.nodes, request.nodes
        if scored is asked or not outcome.scores or scored.names == asked.names:
            return outcome
        score_of = dict(zip(scored.names, outcome.scores, strict=True))
        return PrioritizeOutcome(scores=[score_of[name] for name in asked.names])


class ScoreAhead:
    """Begins scoring, and keeps the scores until they are collected."""

    def __init__(
        self,
        phase: Phase[ScorePhaseResult],
        policy: PolicyHolder,
        cycle_states: CycleStates,
        ended: Callable[[SchedulingCycle], None],
    ) -> None:
        """Score in *phase*; call *ended* with each cycle when its scores are there, or fail."""
        self._ended = ended
        self._phase = phase
        self._policy = policy
        self._cycle_states = cycle_states
        self._uncollected: OrderedDict[str, AheadScores] = OrderedDict()

    def begin(self, cycle: SchedulingCycle, nodes: NodeSet) -> AheadScores | None:
        """Begin to score *nodes*; the result is noted in the cycle, which ends with it.

        None if nobody will ask: kube-scheduler takes a single node without asking for scores.
        """
        request = cycle.request.on(nodes)
        if len(request.nodes) < 2 or request.plugin:
            return None
        loop = asyncio.get_running_loop()
        ahead = AheadScores(
            request=request,
            task=loop.create_task(self._phase.run(request)),
            outcome=loop.create_future(),
        )
        cycle.is_scoring, scale = True, self._policy.score_scale
        ahead.task.add_done_callback(lambda task: self._finish(task, ahead.outcome, cycle, scale))
        self._uncollected[request.pod.uid] = ahead
        if len(self._uncollected) > UNCOLLECTED_LIMIT:
            self._uncollected.popitem(last=False)
        return ahead

    def take(self, uid: str) -> AheadScores | None:
        """Return the scores of a pod, once."""
        return self._uncollected.pop(uid, None)

    def _finish(
        self,
        task: "asyncio.Task[ScorePhaseResult]",
        outcome: "asyncio.Future[PrioritizeOutcome]",
        cycle: SchedulingCycle,
        scale: int,
    ) -> None:
        decision = cycle.decision
        if task.cancelled():
            outcome.cancel()
        elif error := task.exception():
            decision.score_error = str(error)
            outcome.set_exception(error)
            outcome.exception()  # marks it as retrieved: perhaps nobody asks
        else:
            result = task.result()
            decision.score, cycle.scores = result.record, result.by_row
            self._cycle_states.add(decision.uid, result.cycle_state)
            outcome.set_result(PrioritizeOutcome(scores=result.scores(scale)))
        self._ended(cycle)
