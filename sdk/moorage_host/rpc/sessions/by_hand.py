"""A call by hand, in steps: each is a small cycle on some of the nodes, in a turn of its own.

So a session's cycle waits for one step at most, and not for all the nodes that a person asks about.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

import grpc
from msgspec.structs import replace

from moorage.execution import PluginRun, Supervisor
from moorage_host.plugins import CycleInput, Replica
from moorage_host.plugins.replica import Engine
from moorage_host.rpc.errors import CallError
from moorage_host.rpc.lane import Lane
from moorage_host.rpc.sessions.pace import STEP_SECONDS, Pace
from moorage_host.rpc.sessions.settings import CycleSettings
from moorage_host.tracing.current import plugin_spans

Run = TypeVar("Run")

FIRST_NODES, FEWEST_NODES, MOST_NODES = 32, 4, 512
"""Nodes of the first step, and of those after it, which depend on how long steps take."""


def by_hand_lane(service: str, method: str, settings: CycleSettings) -> Lane:
    """Return the lane of a *service* for *method* and for what people read of it."""
    return Lane(
        *(f"/{service}/{each}" for each in (method, "GetState", "ListPlugins")),
        calls=settings.by_hand_calls,
        waiting=settings.by_hand_waiting,
        message_bytes=settings.by_hand_bytes,
    )


class Steps(Generic[Run]):
    """The steps of one call.

    Attributes:
        names: The nodes that it is about.
        generation: That of the state in the first step.
    """

    def __init__(
        self,
        replica: Replica,
        work: CycleInput,
        *,
        turn: AbstractAsyncContextManager[object],
        pace: Pace,
        is_open: Callable[[], bool],
        deadline: float,
    ) -> None:
        """Ask about the nodes that *work* names.

        Args:
            replica: The state.
            work: The pod and the nodes.
            turn: Held in each step; the state may change between two.
            pace: Says when the next step may be taken.
            is_open: Whether the session still is whose state it is.
            deadline: When the answer becomes useless, on `time.perf_counter`.
        """
        self.names = work.names or ()
        self.generation = replica.generation
        self._replica = replica
        self._policy = replica.policy
        self._work = work
        self._turn = turn
        self._pace = pace
        self._is_open = is_open
        self._deadline = deadline
        self._size = FIRST_NODES
        self._in_part = 0

    @property
    def is_one(self) -> bool:
        """Whether one step does for all nodes."""
        return len(self.names) <= self._size

    def parts(self) -> Iterator[slice]:
        """Yield positions of nodes, those for one step at a time."""
        at = 0
        while at < len(self.names) or not at:  # plugins are asked even if there is no node
            part = slice(at, at + self._size)
            self._in_part = len(self.names[part])
            yield part
            at = part.stop

    async def run(self, engine: Engine[Run], part: slice | None = None) -> Run:
        """Run *engine* on the nodes of a part, or on all, in one step.

        Raises:
            CallError: The policy has changed since the call began, or the session has ended.
            NoStateError: See `Replica.run`, as for the other errors.
        """
        names = self.names if part is None else self.names[part]
        async with self._pace.step(), self._turn:
            if self._replica.policy is not self._policy or not self._is_open():
                raise CallError(
                    grpc.StatusCode.UNAVAILABLE,
                    "the policy has changed, or the gateway is gone, since the call began: "
                    "call again",
                )
            supervisor = Supervisor(deadline=self._deadline)
            work = replace(self._work, names=names)
            try:
                _, run = await self._replica.run(work, engine, supervisor)
            finally:
                plugin_spans(supervisor.runs)
        self._fit(sum(each.node_seconds for each in supervisor.runs))
        return run

    def _fit(self, seconds: float) -> None:
        """Choose how many nodes the next step has, by how long plugins needed for the last ones."""
        fitting = self._in_part * STEP_SECONDS / max(seconds, 1e-6)
        self._size = int(min(max(fitting, FEWEST_NODES), MOST_NODES))


def joined(steps: Sequence[Sequence[PluginRun]]) -> list[PluginRun]:
    """Return what plugins did in several steps as if it had been one.

    A plugin that failed in one step has failed; it skipped if it did so in all.
    """
    most = max(steps, key=len)
    runs = {run.plugin: PluginRun(plugin=run.plugin, skipped=True) for run in most}
    for run in (run for step in steps for run in step):
        whole = runs.setdefault(run.plugin, PluginRun(plugin=run.plugin, skipped=True))
        whole.seconds += run.seconds
        whole.node_seconds += run.node_seconds
        whole.failure = whole.failure or run.failure
        whole.skipped = whole.skipped and run.skipped
        whole.note = run.note or whole.note
        kept = dict(whole.kept)
        for key, value in run.kept.items():
            before = kept.get(key, value)
            by_node = {**before.by_node, **value.by_node}
            kept[key] = type(value)(json=value.json or before.json, by_node=by_node)
        whole.kept = kept
    return list(runs.values())
