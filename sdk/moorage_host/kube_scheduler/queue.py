"""The scheduling queue: which pod comes next, and how long a failed one waits.

As in kube-scheduler 1.33+: pods wait in the active queue by priority, then age; rejected ones in
the pool of unschedulable pods until something happens that may help, then in a backoff that is cut
short when nothing else is to be done; after an error in a backoff that is never cut short.
The clock is passed in, so that nothing here ever sleeps.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from moorage_host.kube_scheduler.cache import KnownPod

MAX_UNSCHEDULABLE_SECONDS = 300.0


class ClusterEvent(Enum):
    """What can make another try worthwhile."""

    NODE_CHANGED = "node added or changed"
    NODE_DELETED = "node deleted"
    POD_ADDED = "pod assigned"
    POD_CHANGED = "assigned pod changed"
    POD_DELETED = "assigned pod gone"
    OWN_SPEC_CHANGED = "what the pod wants changed"
    OWN_STATUS_CHANGED = "something else about the pod changed"


_NODE = frozenset((ClusterEvent.NODE_CHANGED, ClusterEvent.OWN_SPEC_CHANGED))
_NODE_OR_POD = _NODE | {ClusterEvent.POD_CHANGED, ClusterEvent.POD_DELETED}
_CLUSTER = frozenset(ClusterEvent) - {ClusterEvent.OWN_STATUS_CHANGED}
# Extenders, and whoever is not listed, are interested in everything.
_HELPS = {
    "NodeUnschedulable": _NODE,
    "TaintToleration": _NODE,
    "NodeAffinity": _NODE,
    "NodePorts": _NODE_OR_POD,
    "NodeResourcesFit": _NODE_OR_POD,
    "VolumeRestrictions": _NODE_OR_POD,
    "PodTopologySpread": _CLUSTER,
    "InterPodAffinity": _CLUSTER,
}


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod on its way through the queue.

    Attributes:
        pod: Its latest state.
        since: When it last entered the queue, by the queue's clock.
        rejections: How often it did not fit.
        errors: How often in a row an attempt broke.
        plugins: Who rejected it last.
    """

    pod: KnownPod
    since: float
    rejections: int = 0
    errors: int = 0
    plugins: frozenset[str] = frozenset()
    place: "list[_Entry] | None" = field(default=None, repr=False)


_Entry = tuple[float, float, int, QueuedPod]


class SchedulingQueue:
    """Hands out pods one at a time.

    Args:
        initial_backoff: Seconds after the first failure; doubles from then on.
        max_backoff: The longest wait, in seconds.
        clock: Returns the time in seconds; need not be the wall clock's.
    """

    def __init__(
        self, *, initial_backoff: float, max_backoff: float, clock: Callable[[], float]
    ) -> None:
        self._initial_backoff = initial_backoff
        self._max_backoff = max_backoff
        self._clock = clock
        self._sequence = 0
        self._pods: dict[str, QueuedPod] = {}
        self._active: list[_Entry] = []
        self._backoff: list[_Entry] = []
        self._error_backoff: list[_Entry] = []
        self._unschedulable: dict[str, QueuedPod] = {}
        self._attempt: QueuedPod | None = None
        self._meanwhile: set[ClusterEvent] = set()

    def __len__(self) -> int:
        return len(self._pods)

    def put(self, pod: KnownPod) -> None:
        """Add a pod that wants a node, or its new state if it waits already."""
        if known := self._pods.get(pod.uid):
            same = known.pod.pod.spec == pod.pod.spec
            known.pod = pod
            event = ClusterEvent.OWN_STATUS_CHANGED if same else ClusterEvent.OWN_SPEC_CHANGED
            if known is self._attempt:
                self._meanwhile.add(event)
            else:
                self._move(known, event)
            return
        self._pods[pod.uid] = queued = QueuedPod(pod, self._clock())
        self._activate(queued)

    def discard(self, uid: str) -> None:
        """Drop a pod: it is gone, or it has a node."""
        if queued := self._pods.pop(uid, None):
            queued.place = None
            self._unschedulable.pop(uid, None)

    def pop(self) -> QueuedPod | None:
        """Take the next pod; it is under way until `done` or `retry`. None if none is ready."""
        now = self._clock()
        self._flush(now)
        queued = self._take(self._active) or self._take(self._backoff)
        if queued:
            queued.place = None
            self._attempt = queued
            self._meanwhile.clear()
        return queued

    def wait(self) -> float | None:
        """Return the seconds until a pod becomes ready, None if only an event can help."""
        due = [
            entry[0] for entries in (self._backoff, self._error_backoff) for entry in entries[:1]
        ]
        due += (queued.since + MAX_UNSCHEDULABLE_SECONDS for queued in self._unschedulable.values())
        return max(0.0, min(due) - self._clock()) if due else None

    def done(self, queued: QueuedPod) -> None:
        """End an attempt without another one: the pod is being bound, or needs no node."""
        if self._attempt is queued:
            self._attempt = None
        if self._pods.get(queued.pod.uid) is queued:
            del self._pods[queued.pod.uid]

    def retry(self, queued: QueuedPod, plugins: frozenset[str]) -> None:
        """Queue a pod again after an attempt that failed; without plugins it was an error."""
        meanwhile = self._meanwhile if self._attempt is queued else set()
        if self._attempt is queued:
            self._attempt = None
        self._pods[queued.pod.uid] = queued
        queued.since, queued.plugins = self._clock(), plugins
        if not plugins:
            queued.errors += 1
            self._push(self._error_backoff, queued, self._due(queued))
            return
        queued.errors = 0
        queued.rejections += 1
        self._unschedulable[queued.pod.uid] = queued
        for event in meanwhile:
            self._move(queued, event)

    def happened(self, event: ClusterEvent) -> None:
        """Give the pods that the event may help another try."""
        if self._attempt:
            self._meanwhile.add(event)
        for queued in list(self._unschedulable.values()):
            self._move(queued, event)

    def retry_all(self) -> int:
        """Give every pod another try at once, whatever it waits for; return how many waited."""
        others = (queued for queued in self._pods.values() if queued is not self._attempt)
        waiting = [queued for queued in others if queued.place is not self._active]
        self._unschedulable.clear()
        for queued in waiting:
            queued.rejections = queued.errors = 0
            self._activate(queued)
        if self._attempt:
            self._meanwhile.update(ClusterEvent)
        return len(waiting)

    def _move(self, queued: QueuedPod, event: ClusterEvent) -> None:
        waits = queued.pod.uid in self._unschedulable
        if not waits or not any(event in _HELPS.get(p, ClusterEvent) for p in queued.plugins):
            return
        del self._unschedulable[queued.pod.uid]
        due = self._due(queued)
        if due > self._clock():
            self._push(self._backoff, queued, due)
        else:
            self._activate(queued)

    def _flush(self, now: float) -> None:
        for queued in list(self._unschedulable.values()):
            if now - queued.since < MAX_UNSCHEDULABLE_SECONDS:
                break  # in order of arrival
            del self._unschedulable[queued.pod.uid]
            self._activate(queued)
        for entries in (self._backoff, self._error_backoff):
            while entries and entries[0][0] <= now:
                if ready := self._take(entries):
                    self._activate(ready)

    def _activate(self, queued: QueuedPod) -> None:
        self._push(self._active, queued, -float(queued.pod.pod.spec.priority))

    def _push(self, entries: list[_Entry], queued: QueuedPod, order: float) -> None:
        queued.place = entries
        self._sequence += 1
        heapq.heappush(entries, (order, queued.since, self._sequence, queued))

    def _take(self, entries: list[_Entry]) -> QueuedPod | None:
        while entries:
            queued = heapq.heappop(entries)[3]
            if queued.place is entries:  # otherwise it has left the queue since
                return queued
        return None

    def _due(self, queued: QueuedPod) -> float:
        count = queued.errors or queued.rejections
        return queued.since + min(self._initial_backoff * 2.0 ** (count - 1), self._max_backoff)
