"""Follows the pods of the workload until each is bound, or known not to be."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto

from cli.up.asked import DEFAULT, Schedulers
from cli.up.cluster import Cluster
from cli.up.manifests import Object

QUIET_SECONDS = 1.5
"""How long nothing may change before pods that suit no node are taken to stay pending: a place
that another pod makes is tried after a backoff of a second at least."""

POLL_SECONDS = 0.25
"""How often to look whether things have settled though nothing changes."""


class Outcome(Enum):
    """How far a pod is: no verdict yet, on a node, on none, failing, without scheduler, or gone."""

    WAITING = auto()
    BOUND = auto()
    UNSCHEDULABLE = auto()
    FAILING = auto()
    UNSERVED = auto()
    DELETED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """How far a pod is.

    Attributes:
        node: Where it is bound; empty if it is not.
        problem: kube-scheduler's message about it; empty if there is none.
        scheduler: Its schedulerName.
    """

    namespace: str
    name: str
    uid: str
    outcome: Outcome = Outcome.WAITING
    node: str = ""
    problem: str = ""
    scheduler: str = DEFAULT

    @classmethod
    def of(cls, pod: Object) -> "PodState":
        """Read it off the pod."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        node = pod["spec"].get("nodeName") or ""
        conditions = status.get("conditions") or ()
        scheduled: Object = next((c for c in conditions if c.get("type") == "PodScheduled"), {})
        return cls(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            outcome=_outcome(node, scheduled.get("reason"), status),
            node=node,
            problem="" if node else scheduled.get("message", ""),
            scheduler=pod["spec"].get("schedulerName") or DEFAULT,
        )


def _outcome(node: str, reason: str | None, status: Object) -> Outcome:
    if node:
        return Outcome.BOUND
    if reason == "SchedulerError":
        return Outcome.FAILING
    # A nominated pod waits for the end of less important ones.
    if reason == "Unschedulable" and not status.get("nominatedNodeName"):
        return Outcome.UNSCHEDULABLE
    return Outcome.WAITING


class Following:
    """The pods of a workload.

    Attributes:
        expected: How many pods have to be scheduled, as far as it is known beforehand.
    """

    def __init__(
        self, cluster: Cluster, created: Iterable[Object], schedulers: Schedulers, made: int = 0
    ) -> None:
        """Follow the *created* pods, and so many that controllers make.

        Pods that were created bound have nothing to wait for.
        """
        self._cluster = cluster
        self._schedulers = schedulers
        self._pods = {pod["metadata"]["uid"]: self._state(pod) for pod in created}
        waiting = (Outcome.WAITING, Outcome.UNSERVED)
        self._wanted = {u for u, pod in self._pods.items() if pod.outcome in waiting}
        self._outcomes = Counter(pod.outcome for pod in self._pods.values())
        self._expected = len(self._pods) + made
        self.expected = len(self._wanted) + made
        self._changed = asyncio.Event()
        self._changed_at = 0.0

    @property
    def pods(self) -> list[PodState]:
        """The pods that had to be scheduled, by namespace and name."""
        return sorted((self._pods[u] for u in self._wanted), key=lambda p: (p.namespace, p.name))

    @property
    def failing(self) -> bool:
        """Whether a pod has no node because something is broken."""
        return self._outcomes[Outcome.FAILING] > 0

    async def until_settled(self, progress: Callable[[int], None]) -> None:
        """Wait until every pod has its verdict; call *progress* with the number of those that do.

        A pod that suits no node has it when nothing changes any more, one whose scheduling fails
        when it failed for the second time in the same way.
        """
        self._changed_at = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch(progress))
            await self._settled()
            watching.cancel()

    async def changes(self) -> AsyncIterator[PodState]:
        """Yield each pod that gets another verdict from now on, for ever; new pods as well."""
        async for kind, pod in self._cluster.follow():
            state = self._note(kind, pod)
            if state and state.outcome is not Outcome.WAITING:
                yield state

    async def _watch(self, progress: Callable[[int], None]) -> None:
        async for kind, pod in self._cluster.follow():
            if self._note(kind, pod):
                progress(len(self._wanted) - self._outcomes[Outcome.WAITING])

    async def _settled(self) -> None:
        while not await self._is_settled():
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._changed.wait()

    async def _is_settled(self) -> bool:
        if self._outcomes[Outcome.WAITING]:
            return False
        all_made = len(self._pods) >= self._expected
        if all_made and not self._outcomes[Outcome.UNSCHEDULABLE] and not self.failing:
            return True
        quiet = asyncio.get_running_loop().time() - self._changed_at > QUIET_SECONDS
        return quiet and (not self.failing or await self._fails_again())

    async def _fails_again(self) -> bool:
        """Whether each failing pod has failed twice as it does now."""
        twice = {
            (event["involvedObject"]["uid"], event["message"].removesuffix(" ..."))
            for event in await self._cluster.failed_attempts()
            if (event.get("series") or {}).get("count", 1) > 1
        }
        failing = [pod for pod in self._pods.values() if pod.outcome is Outcome.FAILING]
        return all(
            any(uid == pod.uid and pod.problem.startswith(note) for uid, note in twice)
            for pod in failing
        )

    def _note(self, kind: str, pod: Object) -> PodState | None:
        """Take over a pod's state; return it if it is news."""
        state, before = self._state(pod), self._pods.get(pod["metadata"]["uid"])
        if kind == "DELETED":
            state = replace(state, outcome=Outcome.DELETED)
        if state == before:
            return None
        if before:
            self._outcomes[before.outcome] -= 1
        else:
            self._wanted.add(state.uid)  # a controller made it
        self._outcomes[state.outcome] += 1
        self._pods[state.uid] = state
        self._changed_at = asyncio.get_running_loop().time()
        self._changed.set()
        return state

    def _state(self, pod: Object) -> PodState:
        state = PodState.of(pod)
        if state.outcome is not Outcome.WAITING or self._schedulers.serve(state.scheduler):
            return state
        return replace(state, outcome=Outcome.UNSERVED)
