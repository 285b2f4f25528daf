"""What both halves of a cycle share: asking replicas about a pod and nodes, or a part of them."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ClassVar, TypeVar

from gateway.calls import CallFailedError
from gateway.cycle.node_set import Candidates, NodeLookup
from gateway.cycle.request import Subject
from gateway.cycle.sharding import Sharding
from gateway.metrics import CycleMetrics
from gateway.replicas.pool import ReplicaPool
from gateway.replicas.work import Work
from moorage.v1 import types_pb2 as pb
from moorage_host.rpc.convert import from_duration

OK = 0

T = TypeVar("T")


class Half:
    """Splits subjects, and asks replicas about them or parts of them.

    Attributes:
        prepares_again: Whether plugins prepare once more after the shards.
    """

    prepares_again: ClassVar[bool] = False

    def __init__(
        self,
        pool: ReplicaPool,
        lookup: NodeLookup,
        sharding: Sharding,
        metrics: CycleMetrics,
    ) -> None:
        self.pool = pool
        self.lookup = lookup
        self._sharding = sharding
        self.metrics = metrics

    def shards(self, subject: Subject) -> int:
        """Return into how many shards the subject's nodes are worth splitting."""
        if self.pool.ready < 2:
            return 1
        count = self._sharding.count(sort_of(subject), len(subject.names), self.pool.idle)
        if count > 1 and not self.lookup.find(subject.names, subject.given).distinct:
            return 1
        return count

    async def ask(
        self,
        subject: Subject,
        nodes: int,
        fill: Callable[[Any, Candidates], Candidates],
        stage: str = "",
        *,
        expected: Candidates | None = None,
    ) -> tuple[Any, Candidates]:
        """Return the result of work on so many nodes that went well, and what it is about.

        Args:
            subject: The pod and the nodes.
            nodes: How many of them the work is about.
            fill: Fills the request, given the nodes as they are known when it is sent; returns what
                the answer will be about.
            stage: Other work than asking plugins about nodes.
            expected: What these nodes probably are.
        """

        def about(request: Any) -> Candidates:
            if expected is not None and expected is self.lookup.usual(subject.names):
                return fill(request, expected)
            return fill(request, self.lookup.find(subject.names, subject.given))

        answer = await self.pool.cycle(
            Work(
                fill=about,
                deadline=subject.deadline,
                sort=(*sort_of(subject), stage),
                nodes=nodes,
            )
        )
        result, found = answer.result, answer.about
        if result.status.code != OK:
            raise CallFailedError(f"{self.pool.kind.name} service: {result.status.message}")
        if not stage and self.pool.ready > 1:
            self._note(subject, found.count, result)
        return result, found

    def _note(self, subject: Subject, nodes: int, result: Any) -> None:
        node_seconds = from_duration(result.node_duration)
        again = from_duration(result.duration) - node_seconds if self.prepares_again else 0.0
        self._sharding.note(sort_of(subject), nodes, node_seconds, again)

    def nonsense(self, what: str) -> CallFailedError:
        """Count an answer that cannot be right, and return the error that says so."""
        self.metrics.nonsense(self.pool.kind.name)
        return CallFailedError(f"{self.pool.kind.name} service answers nonsense: {what}")


def sort_of(subject: Subject) -> tuple[str, str]:
    """Return what decides how long plugins need for a node: the profile, and the only plugin."""
    return subject.pod.spec.scheduler_name, subject.plugin


def fill_cycle(cycle: pb.Cycle, subject: Subject, candidates: Candidates) -> None:
    """Have the subject's pod tried on *candidates*."""
    cycle.profile = subject.pod.spec.scheduler_name
    cycle.pod.json = subject.pod_json
    cycle.candidates = candidates.bitmap
    cycle.plugin = subject.plugin
    if candidates.overrides:
        cycle.overrides.extend(candidates.overrides)
    if subject.excluded_pods:
        cycle.excluded_pods.extend(subject.excluded_pods)


async def gathered(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results, in order; the first failure ends the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]
