"""Filters a rejected pod again when kube-scheduler seems to know more than the gateway.

kube-scheduler retries a rejected pod at once when a pod is deleted or a node changes. Its own watch
may be some milliseconds ahead of the gateway's. If the gateway then rejects the pod by older state,
nothing triggers the next attempt, and the pod waits for minutes.
"""

import asyncio

from gateway.cluster.state import ClusterState
from gateway.cluster.waiters import wait_for
from gateway.cycle import ANSWER_SECONDS, Cycle, Judge
from gateway.cycle.answers import PhaseVerdicts

PAUSE = 9
"""After a recheck, there is none for nine times its length: at most a tenth of all time."""


class Recheck:
    """Waits for newer state when a pod is rejected on all nodes for the second time."""

    def __init__(self, state: ClusterState, judge: Judge, seconds: float) -> None:
        """Have *judge* filter again; wait at most *seconds* for each pod, 0 never waits."""
        self._state = state
        self._judge = judge
        self._seconds = seconds
        self._next = 0.0

    async def run(self, cycle: Cycle, verdicts: PhaseVerdicts) -> PhaseVerdicts:
        """Return newer verdicts if the state changes in time, else *verdicts*.

        Raises:
            CallFailedError: The filter service fails, does not answer in time, or answers nonsense.
        """
        now = asyncio.get_running_loop().time
        start = now()
        if start < self._next:
            return verdicts
        end = min(start + self._seconds, cycle.deadline - ANSWER_SECONDS)
        while not verdicts.record.feasible and await self._changes(verdicts.generation, end):
            verdicts = await self._judge(cycle)
        self._next = now() + PAUSE * (now() - start)
        return verdicts

    async def _changes(self, generation: int, end: float) -> bool:
        """Wait until the state is newer; return whether it is before *end*."""
        is_time_left = asyncio.get_running_loop().time() < end
        is_newer = lambda: self._state.generation > generation  # noqa: E731
        return is_time_left and await wait_for(self._state, is_newer, end)
