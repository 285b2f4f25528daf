"""Gives the watch a moment when kube-scheduler seems to know more than the gateway.

kube-scheduler tries a rejected pod again at once when a pod is deleted or a node changes. Its own
watch may be some milliseconds ahead of the gateway's. If the gateway rejects the pod by what it
knew before, nothing happens any more, and the pod waits for minutes.
"""

import asyncio

from gateway.cluster.state import ClusterState
from gateway.cluster.waiters import wait_for
from gateway.cycle.filtering import Filtered, FilterHalf
from gateway.cycle.request import Subject
from gateway.decisions.log import Decision

REST = 9
"""Times as long as a recheck took there is none: one in a row of hopeless pods must do."""


class Rechecks:
    """Filters a pod again that was rejected on all nodes, and before that as well."""

    def __init__(self, state: ClusterState, filter_half: FilterHalf, seconds: float) -> None:
        """Wait at most *seconds* for each pod; 0 never does."""
        self._state = state
        self._filter_half = filter_half
        self._seconds = seconds
        self._next = 0.0

    async def run(self, subject: Subject, filtered: Filtered, before: Decision | None) -> Filtered:
        """Return *filtered*, or what comes of it as the state changes.

        Args:
            subject: The pod and its nodes.
            filtered: What came of it now.
            before: The decision of the attempt before.

        Raises:
            CallFailedError: The filter service fails, does not answer in time, or answers nonsense.
        """
        now = asyncio.get_running_loop().time
        start = now()
        if filtered.outcome.feasible or not _rejected(before) or start < self._next:
            return filtered
        end = min(start + self._seconds, subject.deadline)
        while not filtered.outcome.feasible and await self._changes(filtered.generation, end):
            filtered = await self._filter_half.run(subject)
        self._next = now() + REST * (now() - start)
        return filtered

    async def _changes(self, generation: int, end: float) -> bool:
        """Wait until the state is newer; return whether it is before *end*."""
        is_time_left = asyncio.get_running_loop().time() < end
        is_newer = lambda: self._state.generation > generation  # noqa: E731
        return is_time_left and await wait_for(self._state, is_newer, end)


def _rejected(decision: Decision | None) -> bool:
    return bool(decision and decision.filter and not decision.filter.feasible)
