"""Follows cycles, binds and the cluster state in the event loop, and hands them to the writer.

Every change of the state is handed on at once: a cycle is in the journal with the generations that
it saw, and from a segment exactly those can be made again.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, closing

from prometheus_client import CollectorRegistry

from gateway.cluster.cluster import Cluster
from gateway.cycle import Cycle
from gateway.cycle.decision import Decision
from gateway.journal.records import (
    Entry,
    ended_bind,
    ended_cycle,
    opening,
    policy_change,
    state_change,
)
from gateway.journal.writer import JournalMetrics, JournalWriter
from gateway.policy.policy import PolicyHolder
from gateway.replicas.set import ReplicaSet
from gateway.settings import GatewaySettings
from moorage.v1 import journal_pb2 as pb

PART = 50
"""Objects in one part of a snapshot: what is written in one go."""

CHECK_SECONDS = 0.5
"""How often it is looked whether a new segment has to begin."""

FULL_SECONDS = 0.05
"""How long a snapshot waits while much waits to be written."""

KEPT_LINKS = 1000
"""Cycles whose bind is still expected; later ones are recorded without the cycle's number."""

BetweenCycles = Callable[[], AbstractAsyncContextManager[None]]


class Journal:
    """Is called at the end of each cycle and bind."""

    def __init__(
        self,
        settings: GatewaySettings,
        cluster: Cluster,
        policy: PolicyHolder,
        pools: Mapping[str, ReplicaSet],
        between_cycles: BetweenCycles,
        registry: CollectorRegistry,
    ) -> None:
        """Write to the folder of *settings*; no cycle runs inside of a *between_cycles* block."""
        self._cluster = cluster
        self._state = cluster.state
        self._policy = policy
        self._pools = pools
        self._between_cycles = between_cycles
        self._metrics = JournalMetrics(registry)
        self._writer = JournalWriter(settings, self._metrics)
        self._segment_bytes = settings.journal_segment_bytes
        self._segment_age = settings.journal_segment_age
        self._retry_interval = settings.journal_retry_interval
        self._generation: int | None = None  # up to which it is in the segment, if there is one
        self._version: tuple[object, ...] = ()
        self._failures = 0
        self._began = 0.0
        self._retry_at = 0.0
        self._cycles = 0
        self._cycle_of: dict[str, int] = {}

    def ended(self, cycle: Cycle) -> None:
        """Note a scheduling cycle that has ended."""
        self._cycles += 1
        uid = cycle.uid
        self._cycle_of.pop(uid, None)
        self._cycle_of[uid] = self._cycles
        if len(self._cycle_of) > KEPT_LINKS:
            del self._cycle_of[next(iter(self._cycle_of))]
        self._note_policy()
        self._append(lambda: ended_cycle(cycle, self._cycles))

    def bound(self, decision: Decision) -> None:
        """Note the outcome of a bind."""
        bind = decision.bind
        if bind is None:
            return
        message = pb.JournalBind(
            namespace=decision.namespace,
            name=decision.pod,
            uid=decision.uid,
            node=bind.node,
            error=bind.error,
            cycle=self._cycle_of.get(decision.uid, 0),
        )
        self._append(lambda: ended_bind(message))

    async def run(self) -> None:
        """Begin segments when it is time, and write until cancelled."""
        await self._cluster.until_synced()
        self._state.listeners.append(self._changed)
        try:
            while True:
                self._notice_failure()
                if self._needs_segment():
                    await self._begin_segment()
                self._metrics.waiting(self._writer.waiting)
                await asyncio.sleep(CHECK_SECONDS)
        finally:
            self._state.listeners.remove(self._changed)
            await asyncio.to_thread(self._writer.close)

    def note(self) -> str | None:
        """Return what is wrong with the journal; None if nothing is."""
        if self._writer.problem:
            return self._writer.problem
        if self._generation is None and self._cycles:
            return "cycles are not recorded until a new segment has begun"
        return None

    def _changed(self) -> None:
        """Hand on a change of the state."""
        if self._generation is None or self._generation == self._state.generation:
            return
        changes = self._state.changes_since(self._generation)
        if changes is None:
            self._break()
            return
        self._generation = changes.generation
        self._put(state_change(changes))

    def _note_policy(self) -> None:
        """Hand on the policy and the plugins if they are others than before."""
        resolved = self._policy.resolved
        if resolved is None or self._generation is None:
            return
        kinds = self._state.objects.kinds
        turnovers = (pool.turnover for pool in self._pools.values())
        version = (resolved.revision, *turnovers, *kinds)
        if version == self._version:
            return
        self._version = version
        members = {kind: pool.all for kind, pool in self._pools.items()}
        plugins = {
            kind: [plugin for member in each for plugin in member.session.plugins]
            for kind, each in members.items()
        }
        self._put(policy_change(resolved, plugins, kinds, self._generation))

    def _append(self, make: Callable[[], Entry]) -> None:
        if self._generation is None:
            self._metrics.dropped("no_segment")
        else:
            self._put(make())

    def _put(self, entry: Entry) -> None:
        if not self._writer.put(entry):
            self._metrics.dropped("queue")
            self._break()

    def _break(self) -> None:
        """End the segment: what follows would not be consistent with it."""
        self._generation = None
        self._writer.put(Entry("end"))

    def _notice_failure(self) -> None:
        if self._writer.failures != self._failures:
            self._failures = self._writer.failures
            self._generation = None
            self._retry_at = time.monotonic() + self._retry_interval

    def _needs_segment(self) -> bool:
        now = time.monotonic()
        if self._generation is None:
            return now >= self._retry_at
        is_old = now - self._began > self._segment_age and self._writer.cycles
        return bool(is_old) or self._writer.grown > self._segment_bytes

    async def _begin_segment(self) -> None:
        """Write the whole state, part by part between cycles; the segment before goes on.

        No cycle runs while the last part is taken, so that none is of both segments.
        """
        state = self._state
        objects = len(state.rows.of) + state.counts["pods"]
        self._writer.put(opening(state.generation, state.objects.kinds, objects))
        with closing(state.everything(PART)) as parts:
            is_last = False
            while not is_last:
                await self._until_there_is_room()
                async with self._between_cycles():
                    if self._writer.failures != self._failures:
                        return  # `run` waits until it tries again
                    part = next(parts)
                    is_last = not part.partial
                    if not self._writer.put(state_change(part, is_snapshot=True)):
                        self._break()
                        return
                    if is_last:
                        self._generation, self._version = part.generation, ()
                        self._began = time.monotonic()

    async def _until_there_is_room(self) -> None:
        # The writer is a thread, which sets no event of this loop.
        while self._writer.is_filling and self._writer.failures == self._failures:  # noqa: ASYNC110
            await asyncio.sleep(FULL_SECONDS)
