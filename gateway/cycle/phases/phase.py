"""Asks replicas about a request, whole or in shards: what filter and score phases share."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ClassVar, Protocol, TypeVar

from gateway.calls import CallFailedError, CycleRequest
from gateway.calls.node_set import NodeRows
from gateway.calls.outcomes import ANSWER_SECONDS
from gateway.cycle.metrics import CycleMetrics
from gateway.cycle.phases.row_index import RowIndex
from gateway.cycle.phases.sharding import Sharding
from gateway.replicas.pool import ReplicaPool
from gateway.replicas.work import Work
from moorage.models import encode
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.convert import from_duration

OK = 0

T = TypeVar("T")
Result = TypeVar("Result", covariant=True)

Fill = Callable[[Any, NodeRows], NodeRows]
"""Fills a message for replicas, given the rows of the request's nodes at the time of sending.

Returns the rows that the answer will be about.
"""


class Phase(Protocol[Result]):
    """A phase of a scheduling cycle, with a cache before it or not."""

    async def run(self, request: CycleRequest) -> Result:
        """Return the result for the nodes of the request.

        Raises:
            CallFailedError: The service fails, does not answer in time, or answers nonsense.
        """


class ReplicaPhase:
    """Sends requests to replicas, whole or in shards.

    Attributes:
        prepares_again: Whether plugins prepare once more after the shards.
    """

    prepares_again: ClassVar[bool] = False

    def __init__(
        self, pool: ReplicaPool, index: RowIndex, sharding: Sharding, metrics: CycleMetrics
    ) -> None:
        self.pool = pool
        self.index = index
        self.metrics = metrics
        self._sharding = sharding

    def shards(self, request: CycleRequest) -> tuple[int, str]:
        """Return into how many shards the request's nodes are worth splitting, and who gets them.

        These are the replicas with one version of plugins.
        """
        if self.pool.ready < 2:
            return 1, ""
        version, replicas = self.pool.members.alike
        count = self._sharding.count(_kind_of_work(request), len(request.nodes), replicas)
        if count > 1 and not self.index.find(request.nodes).distinct:
            return 1, ""
        return count, version

    async def ask(
        self, request: CycleRequest, nodes: int, fill: Fill, stage: str = "", version: str = ""
    ) -> tuple[Any, NodeRows, str]:
        """Return a replica's result that is no failure, the rows that it is about, and its version.

        Args:
            request: The pod and the nodes.
            nodes: How many of them the work is about.
            fill: Fills the message.
            stage: Other work than asking plugins about nodes.
            version: Of which version of plugins the replica must be; empty if of any.

        Raises:
            CallFailedError: See `Phase.run`.
            VersionGoneError: No replica has this version.
        """

        def fill_now(message: Any) -> NodeRows:
            return fill(message, self.index.find(request.nodes))

        work = Work(
            fill=fill_now,
            deadline=request.deadline - ANSWER_SECONDS,
            sort=(*_kind_of_work(request), stage),
            nodes=nodes,
            version=version,
        )
        answer = await self.pool.cycle(work)
        result, rows = answer.result, answer.about
        if result.status.code != OK:
            raise CallFailedError(f"{self.pool.kind.name} service: {result.status.message}")
        if not stage and self.pool.ready > 1:
            self._observe(request, rows.count, result)
        return result, rows, answer.version

    def invalid(self, what: str) -> CallFailedError:
        """Count a result that cannot be right, and return the error about it."""
        self.metrics.invalid_result(self.pool.kind.name)
        return CallFailedError(f"{self.pool.kind.name} service answers nonsense: {what}")

    def _observe(self, request: CycleRequest, nodes: int, result: Any) -> None:
        node_seconds = from_duration(result.node_duration)
        again = from_duration(result.duration) - node_seconds if self.prepares_again else 0.0
        self._sharding.observe(_kind_of_work(request), nodes, node_seconds, again)


def _kind_of_work(request: CycleRequest) -> tuple[str, str]:
    """Return what decides how long plugins need for a node: the profile, and the only plugin."""
    return request.profile, request.plugin


def fill_cycle(cycle: pb.Cycle, request: CycleRequest, nodes: NodeRows) -> None:
    """Ask about the request's pod on *nodes*."""
    cycle.profile = request.profile
    cycle.pod.json = request.pod_json
    cycle.candidates = nodes.bitmap
    cycle.plugin = request.plugin
    for row, manifest in nodes.given:
        cycle.overrides.add(row=row, json=encode(manifest))
    if request.traceparent:
        cycle.traceparent = request.traceparent
    if request.excluded_pods:
        cycle.excluded_pods.extend(request.excluded_pods)


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results, in order; the first failure cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]
