"""Which binds are under way: the binder's own tasks, so that they go on when callers hang up.

Called by the servicer. Nothing here knows gRPC.
"""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from moorage import Binding
from moorage_host.tracing.current import span
from moorage_host.tracing.span import SpanSink, parse
from services.binder.binding.attempt import Attempt, RetryLimits, RetryObserver
from services.binder.binding.calls import PluginCalls, PluginObserver
from services.binder.binding.cycle import BindingCycles, SnapshotSource
from services.binder.binding.fence import Fence, FenceObserver, Guard
from services.binder.binding.outcomes import BindError, Outcome, PluginRun, Reason
from services.binder.binding.past import PastLimits, Pasts
from services.binder.binding.permit import PermitLimits, PermitObserver, Permits
from services.binder.binding.policies import Policies, PolicyText
from services.binder.binding.written import WrittenBinds, WrittenLimits
from services.binder.cluster import Cluster

SETTLED = frozenset(
    (Reason.NOT_FOUND, Reason.OTHER_UID, Reason.TERMINATING, Reason.BOUND_ELSEWHERE)
)
"""How a bind ends after which nothing is left to find out about the pod."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class BindLimits:
    """How much to take on."""

    concurrency: int = 64
    """Binds that talk to the API server at the same time."""
    waiting: int = 1024
    """Binds that may wait for that; more are refused."""
    retries: RetryLimits = field(default_factory=RetryLimits)
    """When to try again."""
    past: PastLimits = field(default_factory=PastLimits)
    """How much to keep of attempts that failed."""
    permit: PermitLimits = field(default_factory=PermitLimits)
    """How many binds may wait for others, and how long."""
    written: WrittenLimits = field(default_factory=WrittenLimits)
    """How many binds to keep for gateways that take over, and how long."""


class Observer(RetryObserver, PluginObserver, PermitObserver, FenceObserver, Protocol):
    """Counts binds."""

    def started(self) -> None:
        """Note that a bind is under way."""

    def ended(self, binding: Binding, result: Outcome | BindError, seconds: float, /) -> None:
        """Note how a bind ended, whether or not its caller still listens."""


@dataclass(frozen=True, slots=True)
class Run:
    """A bind under way.

    Attributes:
        task: The binder's own, which nobody else may cancel.
    """

    guard: Guard
    attempt: Attempt
    task: asyncio.Task[Outcome]

    @property
    def plugins(self) -> Collection[PluginRun]:
        """What plugins have done for it before the write."""
        return self.attempt.plugins.values()


class Binder:
    """Binds pods, each decision once however often it is asked for.

    Args:
        cluster: The API server.
        policies: The bind plugins.
        snapshots: The state of the cluster, for those that read it.
        limits: How much to take on.
        observer: Who counts.

    Attributes:
        fence: Which gateway may bind.
        spans: Takes the spans of binds that are traced.
    """

    spans: SpanSink | None = None

    def __init__(
        self,
        cluster: Cluster,
        policies: Policies,
        snapshots: SnapshotSource,
        *,
        limits: BindLimits,
        observer: Observer,
    ) -> None:
        self._cluster = cluster
        self._limits = limits
        self._observer = observer
        self._slots = asyncio.Semaphore(limits.concurrency)
        calls = PluginCalls(observer)
        self._permits = Permits(calls, limits.permit, observer)
        self._cycles = BindingCycles(policies, calls, self._permits, snapshots, slots=self._slots)
        self._tasks: set[asyncio.Task[Outcome]] = set()
        # The newest run for each uid; it waits for the one before it.
        self._newest: dict[str, Run] = {}
        self._pasts = Pasts(limits.past)
        self._written = WrittenBinds(limits.written, clock=time.monotonic)
        self.fence = Fence(self._written, observer)

    async def bind(
        self,
        binding: Binding,
        *,
        deadline: float,
        epoch: int = 0,
        policy: PolicyText | None = None,
    ) -> Outcome:
        """Bind a pod to a node, or join the bind of this epoch that is under way for it.

        Cancelling this call does not cancel the bind. Joining a bind gives it this call's deadline
        if that is later, and keeps the annotations and the policy of the first.

        Args:
            binding: The decision.
            deadline: Until when an answer is of use, on the monotonic clock.
            epoch: That of the gateway that decided; 0 if it has none.
            policy: The plugins to run around it; None runs none.

        Raises:
            BindError: The pod was not bound, or it is not known whether it was.
        """
        task = self.begin(binding, deadline=deadline, epoch=epoch, policy=policy).task
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await asyncio.shield(task)
        except TimeoutError as error:
            raise too_late(binding) from error

    def begin(
        self,
        binding: Binding,
        *,
        deadline: float,
        epoch: int = 0,
        policy: PolicyText | None = None,
    ) -> Run:
        """Begin what `bind` does.

        Its task ends soon after the deadline, with what `bind` returns or raises.

        Raises:
            BindError: Too many binds are under way, or there is a higher epoch.
        """
        self.fence.admit(binding, epoch)
        run = self._newest.get(binding.uid)
        if run and (run.guard.binding.node, run.guard.epoch) == (binding.node, epoch):
            run.attempt.deadline = max(run.attempt.deadline, deadline)
        else:
            self._check_room(binding)
            run = self._start(self.fence.guard(binding, epoch), deadline, policy, run)
        return run

    def end_waiting(self) -> None:
        """End the waits for other binds; their callers go on with another binder."""
        self._permits.end_waiting()

    async def drain(self) -> None:
        """Wait until no bind is under way. Each ends soon after its deadline."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self._cycles.drain()

    def _check_room(self, binding: Binding) -> None:
        running = len(self._tasks) - self._permits.waiting
        if running >= self._limits.concurrency + self._limits.waiting:
            raise BindError(
                Reason.OVERLOADED,
                f"{binding} was not bound: {running} binds are under way; try again later",
            )

    def _start(
        self, guard: Guard, deadline: float, policy: PolicyText | None, before: Run | None
    ) -> Run:
        binding = guard.binding
        attempt = Attempt(
            self._cluster,
            binding,
            deadline=deadline,
            guard=guard,
            retries=self._limits.retries,
            observer=self._observer,
        )
        work = functools.partial(self._work, attempt, binding, policy, before)
        task = asyncio.create_task(self._run(attempt, guard, work))
        run = self._newest[binding.uid] = Run(guard, attempt, task)
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._finish(binding, run))
        return run

    async def _run(
        self, attempt: Attempt, guard: Guard, work: Callable[[], Awaitable[Outcome]]
    ) -> Outcome:
        started = time.monotonic()
        self._observer.started()
        result: Outcome | BindError = BindError(Reason.UNAVAILABLE, "the binder failed")
        try:
            with self._traced(guard.binding):
                result = await guard.run(work)
        except BindError as error:
            result = error
            raise
        finally:
            self._keep(attempt, guard, result)
            self._observer.ended(guard.binding, result, time.monotonic() - started)
        return result

    def _traced(self, binding: Binding) -> AbstractContextManager[object]:
        """Have a span while the block lasts, if the gateway traces the bind."""
        parent = parse(binding.traceparent) if self.spans is not None else None
        if self.spans is None or parent is None:
            return nullcontext()
        return span(self.spans, parent, "bind pod", kind="server", attributes=_about(binding))

    async def _work(
        self, attempt: Attempt, binding: Binding, policy: PolicyText | None, before: Run | None
    ) -> Outcome:
        if before:
            await asyncio.wait([before.task])
        attempt.past = self._pasts.take(binding.uid)
        look_first = before is not None
        if policy:
            return await self._cycles.run(attempt, binding, policy, look_first=look_first)
        async with self._slots:
            return await attempt.run(look_first=look_first)

    def _keep(self, attempt: Attempt, guard: Guard, result: Outcome | BindError) -> None:
        """Keep what an attempt leaves open, and what it wrote or may have written."""
        binding, unknown_node = guard.binding, attempt.past.node
        if isinstance(result, Outcome):
            self._written.add(binding, unknown=False)
            if unknown_node != binding.node:
                self._written.discard(binding.uid, unknown_node)
        elif result.reason in SETTLED:
            self._written.discard(binding.uid, unknown_node)
        else:
            self._pasts.keep(binding.uid, attempt.past, time.monotonic())
            if unknown_node and guard.has_written:
                self._written.add(replace(binding, node=unknown_node), unknown=True)

    def _finish(self, binding: Binding, run: Run) -> None:
        self.fence.release(run.guard)
        self._tasks.discard(run.task)
        if self._newest.get(binding.uid) is run:
            del self._newest[binding.uid]
        error = None if run.task.cancelled() else run.task.exception()
        # Callers may be gone, so the outcome must be logged here.
        if error and not isinstance(error, BindError):
            _log.error("A bind failed unexpectedly", pod_uid=binding.uid, exc_info=error)


def _about(binding: Binding) -> dict[str, str]:
    pod = {"k8s.namespace.name": binding.namespace, "k8s.pod.name": binding.name}
    return {**pod, "k8s.pod.uid": binding.uid, "k8s.node.name": binding.node}


def too_late(binding: Binding) -> BindError:
    """Return the outcome for callers whose deadline passes before the bind has ended."""
    return BindError(
        Reason.DEADLINE,
        f"{binding} is not known to be bound to node {binding.node}: time ran out while "
        "the bind was under way, and it goes on; try again to learn the outcome",
    )
