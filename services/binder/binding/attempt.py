"""One bind, from the first request to a known outcome.

Pure asyncio: knows the API server's answers, not who asked for the bind. Posting is safe to repeat,
since the API server checks the uid and that the pod is not bound; so an unclear answer is settled
by reading the pod, and the bind is tried again if the pod is still unbound.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

from moorage import Binding
from moorage.backoff import Backoff
from moorage.models import Pod
from moorage_host.kube import KubeError, KubeStatusError
from services.binder.binding.outcomes import BindError, Outcome, Reason
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
    """Time that must be left before the deadline for another try."""


class RetryObserver(Protocol):
    """Counts tries."""

    def retried(self, cause: str, /) -> None:
        """Note that a request is sent again after "timeout", "unreachable" or an HTTP status."""


class Attempt:
    """Binds one pod to one node.

    Args:
        cluster: The API server.
        binding: The decision.
        deadline: Until when to start new tries, on the monotonic clock; may be moved while it runs.
        retries: When to try again.
        observer: Who counts.
    """

    def __init__(
        self,
        cluster: Cluster,
        binding: Binding,
        *,
        deadline: float,
        retries: RetryLimits,
        observer: RetryObserver,
    ) -> None:
        self.deadline = deadline
        self._cluster = cluster
        self._binding = binding
        self._backoff = Backoff(retries.initial, retries.maximum)
        self._reserve = retries.reserve
        self._observer = observer
        # Whether a request of ours may have bound the pod without our hearing of it.
        self._may_have_bound = False

    @property
    def deadline_of_plugins(self) -> float:
        """Until when plugins may work before the bind, so that time for the write is left."""
        return self.deadline - self._reserve

    async def run(self, *, look_first: bool = False) -> Outcome:
        """Bind the pod; `look_first` spares a request that is likely to be refused.

        Raises:
            BindError: The pod was not bound, or it is not known whether it was.
        """
        self._check_time()
        if look_first and (outcome := await self._look()):
            return outcome
        while not (outcome := await self._try()):
            pass
        return outcome

    async def look(self) -> Pod | None:
        """Return the pod, which may be bound as decided, or None if it is already.

        Raises:
            BindError: It may not be bound, or cannot be read.
        """
        self._check_time()
        while True:
            try:
                pod = await self._cluster.read_pod(self._binding)
            except (KubeError, TimeoutError) as error:
                self._raise_if_final(error)
                await self._pause(error)
            else:
                return None if judge(pod, self._binding) else pod

    def _check_time(self) -> None:
        if time.monotonic() >= self.deadline:
            raise BindError(
                Reason.DEADLINE,
                f"{self._binding} was not bound: time ran out before its turn came; try again",
            )

    async def _try(self) -> Outcome | None:
        try:
            await self._cluster.create_binding(self._binding)
        except (KubeError, TimeoutError) as error:
            if outcome := await self._settle(error):
                return outcome
            await self._pause(error)
            return None
        return Outcome.BOUND

    async def _settle(self, error: KubeError | TimeoutError) -> Outcome | None:
        status = error.status if isinstance(error, KubeStatusError) else None
        self._raise_if_final(error)
        if status == THROTTLED:
            return None  # refused at the door, nothing has happened
        self._may_have_bound |= status is None or status >= 500
        return await self._look()

    async def _look(self) -> Outcome | None:
        """Decide from the pod as it is; None if it may still be bound, or cannot be read now."""
        try:
            pod = await self._cluster.read_pod(self._binding)
        except (KubeError, TimeoutError) as error:
            self._raise_if_final(error)
            return None
        if judge(pod, self._binding):
            return Outcome.BOUND if self._may_have_bound else Outcome.ALREADY_BOUND
        return None

    def _raise_if_final(self, error: KubeError | TimeoutError) -> None:
        if isinstance(error, KubeStatusError) and error.status in FINAL:
            reason = FINAL[error.status]
            raise BindError(
                reason,
                f"{self._binding} was not bound to node {self._binding.node}: "
                f"API server answered {error.status} {error.reason}: {error.message}",
            ) from error

    async def _pause(self, error: KubeError | TimeoutError) -> None:
        wait = self._backoff.next(getattr(error, "retry_after", None))
        if time.monotonic() + wait + self._reserve >= self.deadline:
            raise BindError(
                Reason.UNAVAILABLE,
                f"{self._binding} is not known to be bound to node {self._binding.node}, "
                f"and there is no time left to try again: {error}",
            ) from error
        self._observer.retried(_cause(error))
        await asyncio.sleep(wait)


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
