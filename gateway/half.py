"""What both halves of a cycle share: asking replicas about a pod and nodes, or a part of them."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ClassVar, TypeVar

from gateway.calls import CallFailedError
from gateway.metrics import CycleMetrics
from gateway.nodes import Candidates, NodeLookup
from gateway.replicas.pool import ReplicaPool
from gateway.replicas.work import Message, Work
from gateway.sharding import Sharding
from gateway.subject import Subject
from moorage.rpc.convert import from_duration
from moorage.v1 import types_pb2 as pb

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
        replicas = self.pool.idle
        count = self._sharding.count(sort_of(subject), len(subject.names), replicas)
        if count > 1 and not self.lookup.find(subject.names, subject.given).distinct:
            return 1
        return count

    async def ask(
        self,
        subject: Subject,
        nodes: int,
        make: Callable[[Candidates], Message],
        stage: str = "",
        *,
        expected: Candidates | None = None,
    ) -> tuple[Any, Candidates]:
        """Return the result of work on so many nodes that went well, and what it is about.

        Args:
            subject: The pod and the nodes.
            nodes: How many of them the work is about.
            make: Makes the message of the nodes that are known at the moment when it is sent.
            stage: Other work than asking plugins about nodes.
            expected: What these nodes probably are.
        """

        def find() -> Candidates:
            if expected is not None and expected is self.lookup.usual(subject.names):
                return expected
            return self.lookup.find(subject.names, subject.given)

        answer = await self.pool.cycle(
            Work(
                make=lambda: make(find()),
                deadline=subject.deadline,
                sort=(*sort_of(subject), stage),
                nodes=nodes,
            )
        )
        result, found = answer.result, answer.message.about
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


def cycle_of(subject: Subject, candidates: Candidates) -> pb.Cycle:
    """Return the cycle that tries the subject's pod on *candidates*."""
    return pb.Cycle(
        profile=subject.pod.spec.scheduler_name,
        pod=pb.Pod(json=subject.pod_json),
        candidates=candidates.bitmap,
        plugin=subject.plugin,
        overrides=candidates.overrides,
        excluded_pods=subject.excluded_pods,
    )


async def gathered(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results, in order; the first failure ends the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]
