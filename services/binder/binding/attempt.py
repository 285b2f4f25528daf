"""One bind, from the first request to a known outcome.

Knows the API server's answers, not who asked for the bind. A slow API server must not get more
writes than a fast one: a bind is one POST with all the time left, and a POST without an answer is
settled by reading the pod. Only an answer or a broken connection has it sent again, which is safe,
since the API server checks the uid and that the pod is not bound. Once a higher epoch has been
seen (see `fence`) there is no POST any more: what waits is interrupted, what was sent is awaited.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import structlog

from moorage import Binding, PluginFailedError, Refusal, Wait
from moorage.backoff import Backoff
from moorage.execution import EnabledPlugin, Supervisor
from moorage.models import Pod
from moorage_host.kube import KubeError, KubeStatusError
from services.binder.binding.ledger import UnresolvedBind
from services.binder.binding.limits import BindLimits
from services.binder.binding.outcomes import (
    BindError,
    BindPluginRun,
    BindReason,
    BindResult,
    Point,
    Result,
    is_bound_as_decided,
)
from services.binder.cluster import PodClient
from services.binder.metrics import BindMetrics

CONFLICT = 409
THROTTLED = 429

FINAL = {
    400: BindReason.INVALID,
    401: BindReason.FORBIDDEN,
    403: BindReason.FORBIDDEN,
    404: BindReason.NOT_FOUND,
    413: BindReason.INVALID,
    422: BindReason.INVALID,
}
"""Refusals that trying again does not change, by HTTP status."""

METHODS = {"Permit": "permit", "PreBind": "pre_bind"}

Answer = TypeVar("Answer")

_log = structlog.get_logger()


class BindAttempt:
    """Binds one pod to one node.

    Args:
        cluster: The API server.
        binding: The decision.
        epoch: That of the gateway that decided; 0 if it has none, and the bind is never overtaken.
        deadline: Until when to try, on the monotonic clock.
        limits: When to try again.
        metrics: What counts.

    Attributes:
        task: The binder's own, which nobody else may cancel; set before it begins.
        has_begun: The task has taken its first step.
        has_written: A POST was sent; from here on the bind is not interrupted.
        refusal: Why it may not be written any more, once there is a higher epoch.
        unresolved: What earlier requests for the pod left open, and what this attempt leaves open.
        plugins: What plugins have done for it, in the order in which they ran first.
        warning: What was lacking when the node was chosen; "" if nothing was.
        report_wait: Called with a plugin and what it awaits, when that has the bind wait.
    """

    task: asyncio.Task[BindResult]

    def __init__(
        self,
        cluster: PodClient,
        binding: Binding,
        *,
        epoch: int,
        deadline: float,
        limits: BindLimits,
        metrics: BindMetrics,
    ) -> None:
        self.binding = binding
        self.epoch = epoch
        self.deadline = deadline
        self.has_begun = self.has_written = self.is_given_up = False
        self.refusal: BindError | None = None
        self.unresolved = UnresolvedBind()
        self.plugins: dict[tuple[str, Point], BindPluginRun] = {}
        self.warning = ""
        self.report_wait: Callable[[str, str], None] | None = None
        self._cluster = cluster
        self._limits = limits
        self._metrics = metrics
        self._write_limit: asyncio.Timeout | None = None
        self._backoff: Backoff | None = None
        self._overtaken: asyncio.Event | None = None  # while it sleeps between two POSTs

    @property
    def deadline_of_plugins(self) -> float:
        """Until when plugins may work before the bind, so that time for the write is left."""
        return self.deadline - self._limits.retry_reserve

    def extend(self, deadline: float) -> None:
        """Let the attempt, and the POST under way, last until a later deadline."""
        if deadline > self.deadline:
            self.deadline = deadline
            if self._write_limit:
                loop = asyncio.get_running_loop()
                left = max(deadline - time.monotonic(), 0.001)
                self._write_limit.reschedule(loop.time() + self._time_to_write(left))

    def overtake(self, refusal: BindError) -> None:
        """Have the bind refused: end what waits, unless a POST was sent."""
        self.refusal = refusal
        if self._overtaken is not None:
            self._overtaken.set()
        if self.has_begun and not self.has_written:
            self.task.cancel()

    def give_up(self) -> BindError:
        """Return the end of a bind that was overtaken, to be raised."""
        assert self.refusal is not None  # noqa: S101 - it was overtaken
        self.is_given_up = True
        return self.refusal

    async def run(self, *, look_first: bool = False) -> BindResult:
        """Bind the pod; `look_first` spares a request that is likely to be refused.

        Raises:
            BindError: The pod was not bound, or it is not known whether it was.
        """
        unresolved, node = self.unresolved, self.binding.node
        if unresolved.not_before:
            await self._await_turn()
        if (look_first or unresolved.node) and (outcome := await self._look()):
            return outcome
        if unresolved.node and self._time_left() <= self._limits.retry_reserve:
            raise BindError(
                BindReason.DEADLINE,
                f"{self.binding} is not known to be bound to node {unresolved.node}, and there is "
                "no time left to try again",
            )
        while True:
            if self.refusal is not None:
                return await self._outcome_of_overtaken()
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise self._too_late()
            # From here on the outcome is unknown, until there is an answer.
            self.has_written = True
            before, unresolved.node = unresolved.node, node
            try:
                async with asyncio.timeout(self._time_to_write(left)) as self._write_limit:
                    await self._cluster.create_binding(self.binding)
            except (KubeError, TimeoutError) as error:
                failure = error
            else:
                return BindResult.BOUND
            finally:
                self._write_limit = None
            if outcome := await self._settle(failure, before):
                return outcome

    async def rehearse(self, binding: Binding) -> None:
        """Have the API server check the bind without writing it, and look for the node.

        Raises:
            BindError: The pod could not be bound.
        """
        if binding.known_nodes is not None and binding.nodes.get(binding.node) is None:
            message = f"{binding} was not bound: node {binding.node} is gone"
            raise BindError(BindReason.NOT_FOUND, message)
        await self._await_turn()
        while True:
            try:
                async with asyncio.timeout(self._time_to_write(self._time_left())):
                    await self._cluster.create_binding(binding, dry_run=True)
            except (KubeError, TimeoutError) as error:
                self._raise_if_final(error)
                if isinstance(error, KubeStatusError) and error.status == CONFLICT:
                    await self.look()  # says what the pod is instead; bound already is no reason
                    return
                await self._pause(error)
            else:
                return

    async def look(self) -> tuple[Pod, BindResult | None]:
        """Return the pod, and how it came to be bound as decided; None if it still may be.

        Raises:
            BindError: It may not be bound, or cannot be read.
        """
        await self._await_turn()
        while True:
            try:
                pod = await self._cluster.read_pod(self.binding, timeout=self._time_left())
            except (KubeError, TimeoutError) as error:
                self._raise_if_final(error)
                await self._pause(error)
            else:
                return pod, self._outcome(pod)

    async def ask(
        self,
        enabled: EnabledPlugin,
        point: Point,
        question: Callable[[Supervisor], Awaitable[Answer]],
        *,
        otherwise: Answer,
        counts: bool = True,
    ) -> Answer:
        """Ask a plugin before the bind.

        Args:
            enabled: The plugin.
            point: Where it is asked.
            question: Asks it; the supervisor guards it.
            otherwise: The answer of a plugin that failed and need not work.
            counts: Whether the answer is counted, and not only a failure.

        Raises:
            BindError: The plugin refused, or failed, or its time was over before it was asked.
        """
        if time.monotonic() >= (deadline := self.deadline_of_plugins):
            raise self._too_late()
        supervisor = Supervisor(
            owner=(self.binding.namespace, self.binding.name),
            deadline=deadline,
            clock=time.monotonic,
        )
        run = supervisor.begin(enabled)
        result: Result = "failed"
        try:
            answer = await question(supervisor)
            result = _result(answer)
        except PluginFailedError as error:
            if enabled.aborts:
                message = f"{self.binding} was not bound: {error}"
                raise BindError(BindReason.PLUGIN_FAILED, message) from error
            warn(self.binding, error)
            return otherwise
        except TimeoutError as error:
            raise BindError(
                BindReason.PLUGIN_FAILED,
                f"{self.binding} was not bound: plugin {enabled.name} did not end in "
                f"{METHODS[point]} before the bind's deadline",
            ) from error
        finally:
            if counts or result == "failed":
                self._note(enabled.name, point, result, run.seconds)
        if isinstance(answer, Refusal):
            message = f"{self.binding} was not bound: plugin {enabled.name}: {answer.reason}"
            raise BindError(BindReason.REFUSED, message)
        return answer

    def _note(self, plugin: str, point: Point, result: Result, seconds: float) -> None:
        """Note what a plugin answered, perhaps again: the times add up."""
        self._metrics.plugin_ran(plugin, point, result, seconds)
        before = self.plugins.get((plugin, point))
        seconds += before.seconds if before is not None else 0.0
        self.plugins[plugin, point] = BindPluginRun(plugin, point, result, seconds)

    async def _await_turn(self) -> None:
        """Wait as long as the API server asked for in an earlier attempt."""
        if time.monotonic() >= self.deadline:
            raise self._too_late()
        wait = self.unresolved.not_before - time.monotonic()
        if wait > 0:
            if wait + self._limits.retry_reserve >= self._time_left():
                raise BindError(
                    BindReason.UNAVAILABLE,
                    f"{self.binding} was not bound to node {self.binding.node} now: the API "
                    f"server asked to wait for another {wait:.1f} s, which is beyond the deadline; "
                    "try again then",
                )
            await asyncio.sleep(wait)

    def _too_late(self) -> BindError:
        return BindError(
            BindReason.DEADLINE,
            f"{self.binding} was not bound: time ran out before its turn came; try again",
        )

    def _time_left(self) -> float:
        return max(self.deadline - time.monotonic(), 0.001)

    def _time_to_write(self, left: float) -> float:
        """Return how much of the time that is left a POST may take."""
        return max(left - self._limits.retry_reserve, left / 2)

    async def _settle(self, error: KubeError | TimeoutError, before: str) -> BindResult | None:
        """Find out what a POST has done that failed; None if it may be sent again."""
        status = error.status if isinstance(error, KubeStatusError) else None
        if status is not None and status < 500:
            self.unresolved.node = before
        if isinstance(error, TimeoutError):
            error = TimeoutError("the API server did not answer the bind in time")
        self._keep_retry_after(error)
        self._raise_if_final(error)
        # A POST that was throttled was refused at the door: nothing has happened.
        outcome = await self._look() if status != THROTTLED else None
        if outcome is None and self.refusal is None:
            await self._pause(error)
        return outcome

    async def _outcome_of_overtaken(self) -> BindResult:
        """Find out what the requests so far did; there must not be another one."""
        if self.has_written and self.unresolved.node:
            _, outcome = await self.look()
            if outcome:
                return outcome
        raise self.give_up()

    async def _look(self) -> BindResult | None:
        """Decide from the pod as it is; None if it may still be bound, or cannot be read now."""
        try:
            pod = await self._cluster.read_pod(self.binding, timeout=self._time_left())
        except (KubeError, TimeoutError) as error:
            self._raise_if_final(error)
            self._keep_retry_after(error)
            return None
        return self._outcome(pod)

    def _outcome(self, pod: Pod) -> BindResult | None:
        """Return how the pod came to be bound as decided; None if it is not, but may be."""
        if not is_bound_as_decided(pod, self.binding):
            return None
        is_ours = self.unresolved.node == self.binding.node
        return BindResult.BOUND if is_ours else BindResult.ALREADY_BOUND

    def _raise_if_final(self, error: KubeError | TimeoutError) -> None:
        if isinstance(error, KubeStatusError) and error.status in FINAL:
            reason = FINAL[error.status]
            raise BindError(
                reason,
                f"{self.binding} was not bound to node {self.binding.node}: "
                f"API server answered {error.status} {error.reason}: {error.message}",
            ) from error

    def _keep_retry_after(self, error: KubeError | TimeoutError) -> None:
        if seconds := getattr(error, "retry_after", None):
            until = time.monotonic() + min(seconds, self._limits.retry_after_limit)
            self.unresolved.not_before = max(self.unresolved.not_before, until)

    async def _pause(self, error: KubeError | TimeoutError) -> None:
        self._keep_retry_after(error)
        limits, now = self._limits, time.monotonic()
        if self._backoff is None:
            self._backoff = Backoff(limits.retry_initial, limits.retry_maximum)
        wait = self._backoff.next(self.unresolved.not_before - now)
        if wait + limits.retry_reserve >= self.deadline - now:
            raise BindError(
                BindReason.DEADLINE if isinstance(error, TimeoutError) else BindReason.UNAVAILABLE,
                f"{self.binding} is not known to be bound to node {self.binding.node}, "
                f"and there is no time left to try again: {error}",
            ) from error
        self._metrics.retried(_cause(error))
        await self._sleep(wait)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until overtaken."""
        if self.refusal is not None:
            await asyncio.sleep(seconds)
            return
        self._overtaken = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._overtaken.wait()


def warn(binding: Binding, error: PluginFailedError) -> None:
    """Log that a plugin failed whose failure is ignored."""
    _log.warning(
        "A bind plugin failed, and the bind goes on",
        plugin=error.plugin,
        pod=f"{binding.namespace}/{binding.name}",
        pod_uid=binding.uid,
        problem=error.problem,
    )


def _result(answer: object) -> Result:
    if isinstance(answer, Wait):
        return "wait"
    return "refused" if isinstance(answer, Refusal) else "ok"


def _cause(error: KubeError | TimeoutError) -> str:
    if isinstance(error, KubeStatusError):
        return str(error.status)
    return "timeout" if isinstance(error, TimeoutError) else "unreachable"
