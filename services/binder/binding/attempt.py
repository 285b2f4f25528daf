"""One bind, from the first request to a known outcome.

Pure asyncio: knows the API server's answers, not who asked for the bind. A slow API server must not
get more writes than a fast one: a bind is one POST with all the time left, and a POST without an
answer is settled by reading the pod. Only an answer or a broken connection has it sent again, which
is safe, since the API server checks the uid and that the pod is not bound. Once a higher epoch has
been seen there is no POST any more.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

from moorage import Binding
from moorage.backoff import Backoff
from moorage.models import Pod
from moorage_host.kube import KubeError, KubeStatusError
from services.binder.binding.fence import Guard
from services.binder.binding.outcomes import BindError, Outcome, PluginRun, Point, Reason, Result
from services.binder.binding.past import Past
from services.binder.cluster import Cluster

THROTTLED = 429

FINAL = {
    400: Reason.INVALID,
    401: Reason.FORBIDDEN,
    403: Reason.FORBIDDEN,
    404: Reason.NOT_FOUND,
    413: Reason.INVALID,
    422: Reason.INVALID,
}
"""Refusals that trying again does not change, by HTTP status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """When to try again; all times in seconds."""

    initial: float = 0.1
    """The first wait is between 0 and this."""
    maximum: float = 2.0
    """Waits grow up to this."""
    reserve: float = 0.1
    """Time that must be left before the deadline for another try. A POST without an answer is given
    up so long before the deadline, for reading the pod."""


class RetryObserver(Protocol):
    """Counts tries."""

    def retried(self, cause: str, /) -> None:
        """Note that a request is sent again after "timeout", "unreachable" or an HTTP status."""


class Attempt:
    """Binds one pod to one node.

    Args:
        cluster: The API server.
        binding: The decision.
        deadline: Until when to try, on the monotonic clock; may be moved while it runs.
        guard: Knows whether the bind may still be written.
        retries: When to try again.
        observer: Who counts.

    Attributes:
        past: What earlier requests for the pod left open, and what this attempt leaves open.
        plugins: What plugins have done for it, in the order in which they ran first.
    """

    def __init__(
        self,
        cluster: Cluster,
        binding: Binding,
        *,
        deadline: float,
        guard: Guard,
        retries: RetryLimits,
        observer: RetryObserver,
    ) -> None:
        self.past = Past()
        self.plugins: dict[tuple[str, Point], PluginRun] = {}
        self._guard = guard
        self._deadline = deadline
        self._write_limit: asyncio.Timeout | None = None
        self._cluster = cluster
        self._binding = binding
        self._backoff = Backoff(retries.initial, retries.maximum)
        self._reserve = retries.reserve
        self._observer = observer

    @property
    def deadline(self) -> float:
        """Until when to try, on the monotonic clock."""
        return self._deadline

    @deadline.setter
    def deadline(self, deadline: float) -> None:
        self._deadline = deadline
        if self._write_limit:
            self._write_limit.reschedule(asyncio.get_running_loop().time() + self._time_to_write())

    @property
    def deadline_of_plugins(self) -> float:
        """Until when plugins may work before the bind, so that time for the write is left."""
        return self.deadline - self._reserve

    def plugin_ran(self, plugin: str, point: Point, result: Result, seconds: float) -> None:
        """Note what a plugin answered, perhaps again: the times add up."""
        before = self.plugins.get((plugin, point))
        seconds += before.seconds if before is not None else 0.0
        self.plugins[plugin, point] = PluginRun(plugin, point, result, seconds)

    async def run(self, *, look_first: bool = False) -> Outcome:
        """Bind the pod; `look_first` spares a request that is likely to be refused.

        Raises:
            BindError: The pod was not bound, or it is not known whether it was.
        """
        await self._await_turn()
        if (look_first or self.past.node) and (outcome := await self._look()):
            return outcome
        if self.past.node and self._time_left() <= self._reserve:
            raise BindError(
                Reason.DEADLINE,
                f"{self._binding} is not known to be bound to node {self.past.node}, and there is "
                "no time left to try again",
            )
        while not (outcome := await self._try()):
            pass
        return outcome

    async def look(self) -> tuple[Pod, Outcome | None]:
        """Return the pod, and how it came to be bound as decided; None if it still may be.

        Raises:
            BindError: It may not be bound, or cannot be read.
        """
        await self._await_turn()
        while True:
            try:
                pod = await self._cluster.read_pod(self._binding, timeout=self._time_left())
            except (KubeError, TimeoutError) as error:
                self._raise_if_final(error)
                await self._pause(error)
            else:
                return pod, self._outcome(pod)

    async def _await_turn(self) -> None:
        """Wait as long as the API server asked for in an earlier attempt."""
        self._check_time()
        wait = self.past.not_before - time.monotonic()
        if wait > 0:
            if wait + self._reserve >= self._time_left():
                raise BindError(
                    Reason.UNAVAILABLE,
                    f"{self._binding} was not bound to node {self._binding.node} now: the API "
                    f"server asked to wait for another {wait:.1f} s, which is beyond the deadline; "
                    "try again then",
                )
            await asyncio.sleep(wait)

    def _check_time(self) -> None:
        if time.monotonic() >= self._deadline:
            raise BindError(
                Reason.DEADLINE,
                f"{self._binding} was not bound: time ran out before its turn came; try again",
            )

    def _time_left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.001)

    def _time_to_write(self) -> float:
        left = self._time_left()
        return max(left - self._reserve, left / 2)

    async def _try(self) -> Outcome | None:
        self._check_time()
        if self._guard.is_stale:
            return await self._give_up()
        # From here on the outcome is unknown, until there is an answer.
        self._guard.has_written = True
        before, self.past.node = self.past.node, self._binding.node
        try:
            await self._write()
        except (KubeError, TimeoutError) as error:
            if isinstance(error, KubeStatusError) and error.status < 500:
                self.past.node = before
            self.past.wait(time.monotonic(), getattr(error, "retry_after", None))
            if outcome := await self._settle(error):
                return outcome
            if not self._guard.is_stale:
                await self._pause(error)
            return None
        return Outcome.BOUND

    async def _give_up(self) -> Outcome:
        """Find out what the requests so far did; there must not be another one."""
        if self._guard.has_written and self.past.node:
            _, outcome = await self.look()
            if outcome:
                return outcome
        raise self._guard.given_up()

    async def _write(self) -> None:
        """Send the POST; its time grows when the deadline is moved."""
        try:
            async with asyncio.timeout(self._time_to_write()) as self._write_limit:
                await self._cluster.create_binding(self._binding)
        except TimeoutError as error:
            raise TimeoutError("the API server did not answer the bind in time") from error
        finally:
            self._write_limit = None

    async def _settle(self, error: KubeError | TimeoutError) -> Outcome | None:
        status = error.status if isinstance(error, KubeStatusError) else None
        self._raise_if_final(error)
        if status == THROTTLED:
            return None  # refused at the door, nothing has happened
        return await self._look()

    async def _look(self) -> Outcome | None:
        """Decide from the pod as it is; None if it may still be bound, or cannot be read now."""
        try:
            pod = await self._cluster.read_pod(self._binding, timeout=self._time_left())
        except (KubeError, TimeoutError) as error:
            self._raise_if_final(error)
            self.past.wait(time.monotonic(), getattr(error, "retry_after", None))
            return None
        return self._outcome(pod)

    def _outcome(self, pod: Pod) -> Outcome | None:
        """Return how the pod came to be bound as decided; None if it is not, but may be."""
        if not judge(pod, self._binding):
            return None
        is_ours = self.past.node == self._binding.node
        return Outcome.BOUND if is_ours else Outcome.ALREADY_BOUND

    def _raise_if_final(self, error: KubeError | TimeoutError) -> None:
        if isinstance(error, KubeStatusError) and error.status in FINAL:
            reason = FINAL[error.status]
            raise BindError(
                reason,
                f"{self._binding} was not bound to node {self._binding.node}: "
                f"API server answered {error.status} {error.reason}: {error.message}",
            ) from error

    async def _pause(self, error: KubeError | TimeoutError) -> None:
        now = time.monotonic()
        self.past.wait(now, getattr(error, "retry_after", None))
        wait = self._backoff.next(self.past.not_before - now)
        if wait + self._reserve >= self._deadline - now:
            raise BindError(
                Reason.DEADLINE if isinstance(error, TimeoutError) else Reason.UNAVAILABLE,
                f"{self._binding} is not known to be bound to node {self._binding.node}, "
                f"and there is no time left to try again: {error}",
            ) from error
        self._observer.retried(_cause(error))
        await self._guard.sleep(wait)


def judge(pod: Pod, binding: Binding) -> bool:
    """Return whether the pod is bound as decided.

    Raises:
        BindError: It is not and never will be.
    """
    if pod.uid != binding.uid:
        raise BindError(
            Reason.OTHER_UID, f"{binding} has uid {pod.uid}, not {binding.uid}: it was replaced"
        )
    if pod.spec.node_name == binding.node:
        return True
    if pod.spec.node_name:
        raise BindError(
            Reason.BOUND_ELSEWHERE,
            f"{binding} is bound to node {pod.spec.node_name}, not {binding.node}",
        )
    if pod.metadata.deletion_timestamp:
        raise BindError(Reason.TERMINATING, f"{binding} is being deleted")
    if gates := ", ".join(gate.name for gate in pod.spec.scheduling_gates):
        raise BindError(Reason.GATED, f"{binding} has scheduling gates: {gates}")
    return False


def _cause(error: KubeError | TimeoutError) -> str:
    if isinstance(error, KubeStatusError):
        return str(error.status)
    return "timeout" if isinstance(error, TimeoutError) else "unreachable"
