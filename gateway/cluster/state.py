"""The cluster as the gateway knows it: rows, placed and assumed pods, generations.

Reflectors write it, cycles read it, and sessions send its changes to replicas. Pure: no I/O.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gateway.cluster.assumed import AssumedPods
from gateway.cluster.backlog import Backlog
from gateway.cluster.changes import ChangeLog, Changes, Key
from gateway.cluster.objects import ObjectTable
from gateway.cluster.rows import Rows
from moorage.models import NodeManifest, ObjectName, Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A pod on a node, and whether the watch has shown it there or it is assumed or claimed."""

    pod: Pod
    state: Literal["bound", "assumed", "claimed"]


class ClusterState:
    """Nodes with their rows, and pods with their places.

    Attributes:
        generation: Grows with every change that replicas must see.
        rows: The nodes, each with its row.
        manifests_changed: The generation in which a node or an object last came, went or changed.
        objects: The objects of the further kinds that plugins read.
        listeners: Called after each change, also of pods without a place; must not change anything.
    """

    def __init__(
        self,
        *,
        assumed_ttl: float = 300.0,
        claim_ttl: float = 120.0,
        ended_pods: int = 1000,
        kept_changes: int = 50_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start empty.

        Args:
            assumed_ttl: Seconds that a pod stays assumed after its bind until it is seen bound.
            claim_ttl: Seconds that a pod keeps a claimed node while no bind comes.
            ended_pods: Pods that ended last: a call about one of them may still be on its way.
            kept_changes: Changes that are kept; a replica that is further behind gets everything.
            clock: A monotonic clock in seconds.
        """
        self.generation = 1
        self.rows = Rows()
        self.manifests_changed = self.generation
        self._known: dict[str, Pod] = {}
        self._assumed = AssumedPods(assumed_ttl=assumed_ttl, claim_ttl=claim_ttl, clock=clock)
        self._ended: deque[str] = deque(maxlen=ended_pods)
        self._place: dict[str, str] = {}
        self._on_node: dict[str, set[str]] = {}
        self._log = ChangeLog(kept_changes)
        self._backlogs: list[Backlog] = []
        self.objects = ObjectTable(self._record_object)
        self.listeners: list[Callable[[], None]] = []

    @property
    def counts(self) -> dict[str, int]:
        """How many nodes, pods with a place, assumed pods, claims among them, and objects."""
        return {
            "nodes": len(self.rows.of),
            "pods": len(self._place),
            **self._assumed.counts,
            **self.objects.counts,
        }

    def pod(self, uid: str) -> Pod | None:
        """Return a pod that has not ended, bound or not."""
        return self._known.get(uid)

    def has_ended(self, uid: str) -> bool:
        """Whether a pod was deleted or has ended not long ago."""
        return uid not in self._known and uid in self._ended

    def place_of(self, uid: str) -> str:
        """Return the node that a pod is bound to, assumed on, or has claimed; "" if none."""
        return self._place.get(uid, "")

    def bound_to(self, uid: str) -> str:
        """Return the node that the watch shows a pod on; "" if none."""
        pod = self._known.get(uid)
        return pod.spec.node_name if pod is not None else ""

    def placements(self, node: str) -> list[Placement]:
        """Return what is on a node."""
        return [self._placement(uid) for uid in self._on_node.get(node, ())]

    def _placement(self, uid: str) -> Placement:
        assumption = self._assumed.get(uid)
        if assumption is None:
            return Placement(pod=self._known[uid], state="bound")
        return Placement(pod=assumption.pod, state="claimed" if assumption.is_claim else "assumed")

    def is_assumed(self, uid: str) -> bool:
        """Whether a bind of the pod has come that the watch has not shown."""
        assumption = self._assumed.get(uid)
        return assumption is not None and not assumption.is_claim

    def claim(self, pod: Pod, node: str, failure: str = "") -> None:
        """Count *pod* as placed on *node* from here on, before its bind comes.

        *failure* is the failed attempt that the pod shows already.
        """
        self._assumed.claim(pod, node, failure)
        self._update_placement(pod.uid)

    def note_failure(self, uid: str, failure: str) -> None:
        """Drop a pod's claim if the pod shows another failed attempt than before it."""
        assumption = self._assumed.get(uid)
        if failure and assumption is not None and failure != assumption.failure:
            self.release(uid)

    def release(self, uid: str) -> None:
        """Drop a pod's claim, if it has one and no bind has come."""
        assumption = self._assumed.get(uid)
        if assumption is not None and assumption.is_claim:
            self.forget(uid)

    def release_all(self) -> None:
        """Drop all claims."""
        for uid in self._assumed.claims():
            self.forget(uid)

    def assume(self, pod: Pod, node: str) -> None:
        """Count *pod* as placed on *node* while its bind is under way."""
        if self._assumed.assume(pod, node):
            self._update_placement(pod.uid)

    def confirm(self, uid: str) -> None:
        """Note that an assumed pod is bound; it stays assumed until the watch shows that."""
        self._assumed.confirm(uid)

    def forget(self, uid: str) -> None:
        """Note that an assumed pod is not bound after all."""
        if self._assumed.pop(uid) is not None:
            self._update_placement(uid)

    def expire(self, heard: float = math.inf) -> int:
        """Forget claims and assumed pods that were not seen bound in time; return how many.

        *heard* is when the watch of pods was known to be up to date last, on the clock.
        """
        late = self._assumed.late(min(heard, self._assumed.clock()))
        for uid in late:
            self.forget(uid)
        return len(late)

    def changes_since(self, generation: int) -> Changes | None:
        """Return what happened after *generation*; None if the log no longer goes back that far."""
        if generation == self.generation:
            return Changes(generation=generation)
        changed = self._log.since(generation)
        return None if changed is None else self._changes(*changed)

    def everything(self, size: int) -> Generator[Changes, None, None]:
        """Yield the whole state in parts of at most *size* objects: nodes, pods on them, others.

        The state may change between two parts. Later parts contain those changes too. Only the last
        part is not `partial`; it has the generation of the time at which it is made.
        """
        backlog = Backlog(self.rows.in_use, self._placed_uids(), list(self.objects))
        self._backlogs.append(backlog)
        is_last = False
        try:
            while not is_last:
                rows, uids, objects, is_last = backlog.take(size)
                yield replace(self._changes(rows, uids, objects), partial=not is_last)
        finally:
            self._backlogs.remove(backlog)

    def _placed_uids(self) -> Iterator[str]:
        """Yield the pods node by node: the garbage collector takes long for one long list."""
        for name in list(self.rows.of):
            yield from list(self._on_node.get(name, ()))

    def _changes(
        self, rows: Sequence[int], uids: Sequence[str], objects: Sequence[ObjectName]
    ) -> Changes:
        names = {row: self.rows.name_at(row) for row in rows}
        places = {uid: self.rows.of.get(self._place.get(uid, "")) for uid in uids}
        contents = self.objects.contents(objects)
        return Changes(
            generation=self.generation,
            nodes=[(row, self.rows.entries[name].content) for row, name in names.items() if name],
            removed_rows=[row for row, name in names.items() if name is None],
            pods=[(row, self._placed_pod(uid)) for uid, row in places.items() if row is not None],
            removed_pods=[uid for uid, row in places.items() if row is None],
            objects=[(name, content) for name, content in contents if content is not None],
            removed_objects=[name for name, content in contents if content is None],
        )

    def _placed_pod(self, uid: str) -> Pod:
        assumption = self._assumed.get(uid)
        return assumption.pod if assumption else self._known[uid]

    def set_node(self, manifest: NodeManifest) -> None:
        """Take over a node; one that reads the same is no change."""
        old = self.rows.entries.get(manifest.name)
        if old is not None and old.manifest == manifest:
            return
        row = self.rows.put(manifest)
        # Pods that were bound before their node was seen have waited for it.
        self._record_node(row, manifest.name, with_pods=old is None)

    def drop_node(self, name: str) -> None:
        """Forget a node; its pods keep their place in case it comes back."""
        row = self.rows.free(name)
        if row is not None:
            self._record_node(row, name, with_pods=True)

    def set_pod(self, pod: Pod) -> None:
        """Take over a pod that has not ended."""
        old = self._known.get(pod.uid)
        if old == pod:
            return
        self._known[pod.uid] = pod
        assumed = self._assumed.pop(pod.uid) if pod.spec.node_name else None
        if assumed is not None and assumed.pod == pod:
            return  # as it was assumed: replicas know it
        # Replicas do not need a pod before it has a place.
        if pod.spec.node_name or (old is not None and old.spec.node_name):
            self._update_placement(pod.uid)
        else:
            self._notify()

    def drop_pod(self, uid: str) -> None:
        """Forget a pod that was deleted or has ended."""
        self._known.pop(uid, None)
        self._ended.append(uid)
        self._assumed.pop(uid)
        self._update_placement(uid)

    def known_nodes(self) -> Sequence[str]:
        """Return the names of all nodes."""
        return list(self.rows.of)

    def known_pods(self) -> Sequence[str]:
        """Return the UIDs of all pods that were seen."""
        return list(self._known)

    def _update_placement(self, uid: str) -> None:
        """Determine where a pod is now, and record that it or its place changed."""
        assumption, pod = self._assumed.get(uid), self._known.get(uid)
        node = assumption.node if assumption else pod.spec.node_name if pod else ""
        before = self._place.pop(uid, "")
        if before:
            self._on_node[before].discard(uid)
            if not self._on_node[before]:
                del self._on_node[before]
        if node:
            self._place[uid] = node
            self._on_node.setdefault(node, set()).add(uid)
        if before or node:
            self._record(uid)
            for name in {before, node}:
                if (row := self.rows.of.get(name)) is not None:
                    self.rows.touch(row, self.generation)

    def _record(self, *keys: Key) -> None:
        self.generation += 1
        self._log.add(self.generation, *keys)
        for backlog in self._backlogs:
            for key in keys:
                backlog.note(key)
        self._notify()

    def _notify(self) -> None:
        for listener in self.listeners:
            listener()

    def _record_object(self, name: ObjectName) -> None:
        self._record(name)
        self.manifests_changed = self.generation

    def _record_node(self, row: int, name: str, *, with_pods: bool) -> None:
        """Record that a row has another node or none; its pods then have, or lose, their place."""
        self._record(row, *(self._on_node.get(name, ()) if with_pods else ()))
        self.manifests_changed = self.generation
        self.rows.touch(row, self.generation)
