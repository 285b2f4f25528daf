"""Filters a rejected pod again when kube-scheduler seems to know more than the gateway.

kube-scheduler retries a rejected pod at once when a pod is deleted or a node changes. Its own watch
may be some milliseconds ahead of the gateway's. If the gateway then rejects the pod by older state,
nothing triggers the next attempt, and the pod waits for minutes.
"""

import asyncio

from gateway.calls import CycleRequest
from gateway.calls.outcomes import ANSWER_SECONDS
from gateway.cluster.state import ClusterState
from gateway.cluster.waiters import wait_for
from gateway.cycle.phases.filtering import FilterPhaseResult
from gateway.cycle.phases.phase import Phase
from gateway.decisions.records import Decision

PAUSE = 9
"""After a recheck, there is none for nine times its length: at most a tenth of all time."""


class Recheck:
    """Waits for newer state when a pod is rejected on all nodes for the second time."""

    def __init__(
        self, state: ClusterState, phase: Phase[FilterPhaseResult], seconds: float
    ) -> None:
        """Wait at most *seconds* for each pod; 0 never waits."""
        self._state = state
        self._phase = phase
        self._seconds = seconds
        self._next = 0.0

    async def run(
        self, request: CycleRequest, result: FilterPhaseResult, previous: Decision | None
    ) -> FilterPhaseResult:
        """Return *result*, or a newer one if the state changes in time.

        Args:
            request: The pod and its nodes.
            result: The result so far.
            previous: The decision of the attempt before.

        Raises:
            CallFailedError: The filter service fails, does not answer in time, or answers nonsense.
        """
        now = asyncio.get_running_loop().time
        start = now()
        if len(result.outcome.feasible) or not _rejected(previous) or start < self._next:
            return result
        end = min(start + self._seconds, request.deadline - ANSWER_SECONDS)
        while not len(result.outcome.feasible) and await self._changes(result.generation, end):
            result = await self._phase.run(request)
        self._next = now() + PAUSE * (now() - start)
        return result

    async def _changes(self, generation: int, end: float) -> bool:
        """Wait until the state is newer; return whether it is before *end*."""
        is_time_left = asyncio.get_running_loop().time() < end
        is_newer = lambda: self._state.generation > generation  # noqa: E731
        return is_time_left and await wait_for(self._state, is_newer, end)


def _rejected(decision: Decision | None) -> bool:
    return bool(decision and decision.filter and not decision.filter.feasible)
