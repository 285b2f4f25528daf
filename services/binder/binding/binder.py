"""Which binds are under way: the binder's own tasks, so that they go on when callers hang up."""

import asyncio
import functools
import time
from contextlib import AbstractContextManager, nullcontext

import structlog
from opentelemetry.trace import SpanKind, Tracer

from moorage import Binding
from moorage_host.tracing.spans import sampled, span
from services.binder.binding.attempt import BindAttempt
from services.binder.binding.cycle import BindingCycles
from services.binder.binding.fence import Fence
from services.binder.binding.ledger import BindHistory, UnresolvedBinds
from services.binder.binding.limits import BindLimits
from services.binder.binding.outcomes import BindError, BindReason, BindResult
from services.binder.binding.policies import Policies, PolicyText
from services.binder.cluster import PodClient
from services.binder.events import BindEvents
from services.binder.metrics import BindMetrics
from services.binder.snapshots import Snapshots

SETTLED = frozenset(
    (BindReason.NOT_FOUND, BindReason.OTHER_UID, BindReason.TERMINATING, BindReason.BOUND_ELSEWHERE)
)
"""How a bind ends after which nothing is left to find out about the pod."""

_log = structlog.get_logger()


class Binder:
    """Binds pods, each decision once however often it is asked for.

    Args:
        cluster: The API server.
        policies: The bind plugins.
        snapshots: The state of the cluster, for those that read it.
        limits: How much to take on.
        metrics: What counts.
        events: Reports binds to users.

    Attributes:
        attempts: The binds under way.
        fence: Which gateway may bind.
        tracer: Records the spans of binds that are traced.
    """

    def __init__(
        self,
        cluster: PodClient,
        policies: Policies,
        snapshots: Snapshots,
        *,
        limits: BindLimits,
        metrics: BindMetrics,
        events: BindEvents | None = None,
    ) -> None:
        self.attempts: set[BindAttempt] = set()
        self.tracer: Tracer | None = None
        self._cluster = cluster
        self._limits = limits
        self._metrics = metrics
        self._events = events
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._cycles = BindingCycles(policies, snapshots, limits, metrics, self._slots)
        # The newest attempt for each uid; it waits for the one before it.
        self._newest: dict[str, BindAttempt] = {}
        self._unresolved = UnresolvedBinds(limits.kept_attempts)
        self._history = BindHistory(
            limits.written_binds, limits.written_binds_age, clock=time.monotonic
        )
        self.fence = Fence(self.attempts, self._history, metrics)
        metrics.show_running(lambda: len(self.attempts))

    def begin(
        self,
        binding: Binding,
        *,
        deadline: float,
        epoch: int = 0,
        policy: PolicyText | None = None,
    ) -> BindAttempt:
        """Bind a pod to a node, or join the bind of this epoch that is under way for it.

        Joining a bind gives it this call's deadline if that is later, and keeps the annotations and
        the policy of the first. Its task ends soon after the deadline: an outcome or a BindError.

        Args:
            binding: The decision.
            deadline: Until when an answer is of use, on the monotonic clock.
            epoch: That of the gateway that decided; 0 if it has none.
            policy: The plugins to run around it; None runs none.

        Raises:
            BindError: Too many binds are under way, or there is a higher epoch.
        """
        if epoch != self.fence.epoch:  # as a rule there is one gateway
            self.fence.admit(binding, epoch)
        before = self._newest.get(binding.uid)
        if before and (before.binding.node, before.epoch) == (binding.node, epoch):
            before.extend(deadline)
            return before
        if len(self.attempts) >= self._limits.concurrency + self._limits.max_waiting:
            self._check_room(binding)
        attempt = BindAttempt(
            self._cluster,
            binding,
            epoch=epoch,
            deadline=deadline,
            limits=self._limits,
            metrics=self._metrics,
        )
        attempt.task = task = asyncio.create_task(self._run(attempt, policy, before))
        self._newest[binding.uid] = attempt
        self.attempts.add(attempt)
        task.add_done_callback(functools.partial(self._finish, attempt, time.monotonic()))
        return attempt

    def end_waiting(self) -> None:
        """End the waits for other binds; their callers go on with another binder."""
        self._cycles.permits.end_waiting()

    async def drain(self) -> None:
        """Wait until no bind is under way. Each ends soon after its deadline."""
        while self.attempts:
            await asyncio.wait([attempt.task for attempt in self.attempts])
        await self._cycles.drain()

    def _check_room(self, binding: Binding) -> None:
        """Refuse a bind if too many are under way, without those that wait for others."""
        running = len(self.attempts) - len(self._cycles.permits.waiting)
        if running >= self._limits.concurrency + self._limits.max_waiting:
            raise BindError(
                BindReason.OVERLOADED,
                f"{binding} was not bound: {running} binds are under way; try again later",
            )

    async def _run(
        self, attempt: BindAttempt, policy: PolicyText | None, before: BindAttempt | None
    ) -> BindResult:
        attempt.has_begun, binding = True, attempt.binding
        try:
            if attempt.refusal is not None:
                raise attempt.give_up()
            with nullcontext() if self.tracer is None else self._traced(self.tracer, binding):
                if before:
                    await asyncio.wait([before.task])
                attempt.unresolved = self._unresolved.take(binding.uid)
                if policy:
                    return await self._cycles.run(attempt, policy, look_first=before is not None)
                async with self._slots:
                    return await attempt.run(look_first=before is not None)
        except asyncio.CancelledError:
            if attempt.refusal is None or attempt.has_written:
                raise
            raise attempt.give_up() from None

    def _traced(self, tracer: Tracer, binding: Binding) -> AbstractContextManager[object]:
        if (parent := sampled(binding.traceparent)) is None:
            return nullcontext()
        about = _about(binding)
        return span(tracer, "bind pod", parent, kind=SpanKind.SERVER, attributes=about)

    def _finish(self, attempt: BindAttempt, started: float, task: asyncio.Task[BindResult]) -> None:
        """Keep what an attempt leaves open, and what it wrote or may have written; count it."""
        binding = attempt.binding
        self.attempts.discard(attempt)
        if self._newest.get(binding.uid) is attempt:
            del self._newest[binding.uid]
        error = None if task.cancelled() else task.exception()
        result: BindResult | BindError
        if isinstance(error, BindError):
            result = error
        elif error is None and not task.cancelled():
            result = task.result()
        else:
            result = BindError(BindReason.UNAVAILABLE, "the binder failed")
        unresolved = attempt.unresolved
        if isinstance(result, BindResult):
            self._history.add(binding, binding.node, unknown=False)
            if unresolved.node != binding.node:
                self._history.discard(binding.uid, unresolved.node)
        elif result.reason in SETTLED:
            self._history.discard(binding.uid, unresolved.node)
        else:
            self._unresolved.keep(binding.uid, unresolved)
            if unresolved.node and attempt.has_written:
                self._history.add(binding, unresolved.node, unknown=True)
        if attempt.is_given_up:
            self._metrics.fenced("waiting")
        self._metrics.on_bind_end(binding, result, time.monotonic() - started)
        if self._events is not None and (result is not self._events.unwanted or attempt.warning):
            self._events.record(binding, result, attempt.warning)
        if error is not None and result is not error:
            # Callers may be gone, so the failure must be logged here.
            _log.error("A bind failed unexpectedly", pod_uid=binding.uid, exc_info=error)


def _about(binding: Binding) -> dict[str, str]:
    pod = {"k8s.namespace.name": binding.namespace, "k8s.pod.name": binding.name}
    return {**pod, "k8s.pod.uid": binding.uid, "k8s.node.name": binding.node}


def too_late(binding: Binding) -> BindError:
    """Return the outcome for callers whose deadline passes before the bind has ended."""
    return BindError(
        BindReason.DEADLINE,
        f"{binding} is not known to be bound to node {binding.node}: time ran out while "
        "the bind was under way, and it goes on; try again to learn the outcome",
    )
