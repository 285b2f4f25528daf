"""Follows the pods of the workload until each is bound, or known not to be."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto

from cli.shared.manifests import Object
from cli.up.cluster import PODS
from sandbox.client import SYNCED, Api

DEFAULT = "default-scheduler"
"""The schedulerName of pods that name none; kube-scheduler serves it without Moorage here."""

QUIET_SECONDS = 1.5
"""How long nothing may change before pods that suit no node are taken to stay pending: a place
that another pod makes is tried after a backoff of a second at least."""

FAILING_SECONDS = 3.0
"""The same where scheduling fails: two more attempts may mend that."""

POLL_SECONDS = 0.25
"""How often to look whether things have settled though nothing changes."""


class PodProgress(Enum):
    """How far a pod is: no verdict yet, on a node, on none, failing, without scheduler, gone.

    No scheduler tries a gated one.
    """

    WAITING = auto()
    BOUND = auto()
    UNSCHEDULABLE = auto()
    FAILING = auto()
    UNSERVED = auto()
    GATED = auto()
    DELETED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """How far a pod is.

    Attributes:
        node: Where it is bound; empty if it is not.
        problem: kube-scheduler's message about it; empty if there is none.
        preempted: Whether kube-scheduler has marked it as a victim of preemption.
    """

    namespace: str
    name: str
    uid: str
    outcome: PodProgress = PodProgress.WAITING
    node: str = ""
    problem: str = ""
    preempted: bool = False

    @property
    def key(self) -> str:
        """The pod as NAMESPACE/NAME."""
        return f"{self.namespace}/{self.name}"


class Following:
    """The pods of a workload.

    Attributes:
        expected: How many pods have to be scheduled, as far as it is known beforehand.
    """

    def __init__(self, api: Api, profiles: Collection[str], made: int = 0) -> None:
        """Follow the pods that `expect` adds, and so many that controllers make.

        Args:
            api: The API server.
            profiles: The schedulerNames that Moorage serves.
            made: How many pods controllers will make.
        """
        self.expected = made
        self._api = api
        self._served = {*profiles, DEFAULT}
        self._pods: dict[str, PodState] = {}
        self._wanted: set[str] = set()
        self._outcomes: Counter[PodProgress] = Counter()
        self._shown: dict[str, tuple[PodProgress, str]] = {}
        self._all = made
        self._changed = asyncio.Event()
        self._changed_at = self._now()

    @property
    def pods(self) -> list[PodState]:
        """The pods that had to be scheduled, by namespace and name."""
        return sorted((self._pods[u] for u in self._wanted), key=lambda p: (p.namespace, p.name))

    @property
    def failing(self) -> bool:
        """Whether a pod has no node because something is broken."""
        return self._outcomes[PodProgress.FAILING] > 0

    def expect(self, pod: Object) -> None:
        """Follow a pod that was created; one that was created bound has nothing to wait for."""
        state = self._state(pod)
        self._pods[state.uid] = state
        self._outcomes[state.outcome] += 1
        self._all += 1
        if state.outcome is not PodProgress.BOUND:
            self.expected += 1
            self._wanted.add(state.uid)

    async def catch_up(self) -> None:
        """Take over how far all pods are now."""
        pods, _ = await self._api.list(PODS)
        for pod in pods:
            self._note(self._state(pod))

    async def until_settled(self, progress: Callable[[int], None]) -> None:
        """Wait until every pod has its verdict; call *progress* with the number of those that do.

        A pod that suits no node, or whose scheduling fails, has it when nothing changes any more.
        """
        self._changed_at = self._now()
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch(progress))
            while not self._is_settled():
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._changed.wait()
            watching.cancel()

    async def changes(self) -> AsyncIterator[PodState]:
        """Yield each pod that gets another verdict from now on, for ever; new and deleted ones too.

        A pod that stays pending is yielded again only after `ask_again`, with its next news.
        """
        self._shown = {uid: (pod.outcome, pod.node) for uid, pod in self._pods.items()}
        async for state in self._news():
            verdict = state.outcome, state.node
            if state.outcome is not PodProgress.WAITING and self._shown.get(state.uid) != verdict:
                self._shown[state.uid] = verdict
                yield state
            if state.outcome is PodProgress.DELETED:
                self._wanted.discard(state.uid)
                self._shown.pop(state.uid, None)
                del self._pods[state.uid]

    def ask_again(self) -> None:
        """Have pods that stay pending yielded once more: what decides about them has changed."""
        self._shown = {uid: verdict for uid, verdict in self._shown.items() if verdict[1]}

    async def _watch(self, progress: Callable[[int], None]) -> None:
        async for _ in self._news():
            progress(len(self._wanted) - self._outcomes[PodProgress.WAITING])

    async def _news(self) -> AsyncIterator[PodState]:
        """Yield the state of each pod that is another than before, for ever."""
        present = set[str]()
        async for kind, pod in self._api.follow(PODS):
            if kind == SYNCED:  # what it does not list was deleted before it began
                uids = self._pods.keys() - present
                news = [replace(self._pods[uid], outcome=PodProgress.DELETED) for uid in uids]
            elif kind == "DELETED":
                present.discard(pod["metadata"]["uid"])
                news = [replace(self._state(pod), outcome=PodProgress.DELETED)]
            else:
                present.add(pod["metadata"]["uid"])
                news = [self._state(pod)]
            for state in news:
                if self._note(state):
                    yield state

    def _is_settled(self) -> bool:
        if self._outcomes[PodProgress.WAITING]:
            return False
        pending = self.failing or self._outcomes[PodProgress.UNSCHEDULABLE]
        if len(self._pods) >= self._all and not pending:
            return True
        quiet = FAILING_SECONDS if self.failing else QUIET_SECONDS
        return self._now() - self._changed_at > quiet

    def _note(self, state: PodState) -> bool:
        """Take over a pod's state; return whether it is news."""
        before = self._pods.get(state.uid)
        if state == before:
            return False
        if before:
            self._outcomes[before.outcome] -= 1
        else:
            self._wanted.add(state.uid)  # a controller made it
        self._outcomes[state.outcome] += 1
        self._pods[state.uid] = state
        self._changed_at = self._now()
        self._changed.set()
        return True

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _state(self, pod: Object) -> PodState:
        """Read off a pod how far it is."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        node = pod["spec"].get("nodeName") or ""
        conditions = status.get("conditions") or ()
        scheduled: Object = next((c for c in conditions if c.get("type") == "PodScheduled"), {})
        outcome = PodProgress.WAITING
        if node:
            outcome = PodProgress.BOUND
        elif scheduled.get("reason") == "SchedulerError":
            outcome = PodProgress.FAILING
        # A nominated pod waits for the end of less important ones.
        elif scheduled.get("reason") == "Unschedulable" and not status.get("nominatedNodeName"):
            outcome = PodProgress.UNSCHEDULABLE
        elif pod["spec"].get("schedulingGates"):
            outcome = PodProgress.GATED
        elif (pod["spec"].get("schedulerName") or DEFAULT) not in self._served:
            outcome = PodProgress.UNSERVED
        return PodState(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
            outcome=outcome,
            node=node,
            problem="" if node else scheduled.get("message", ""),
            preempted=any(c.get("reason") == "PreemptionByScheduler" for c in conditions),
        )
