"""The cluster as the gateway knows it: rows, placed and assumed pods, generations.

Reflectors write it, cycles read it, and sessions send its changes to replicas. Pure: no I/O.

Each change that replicas must see has a generation, and the newest are logged by their keys. A pod
has a place once the watch shows it on a node, or before that: a *claim* is taken in a cycle, and
the pod is *assumed* on its node from its bind on. An assumption ends when the watch shows the pod
bound, the bind fails, the pod is gone, or it is too late.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

from msgspec.structs import replace

from gateway.cluster.changes import Backlog, Changes, Key, Keys
from gateway.cluster.heavy import HEAVY_BYTES, HeavyPods
from gateway.cluster.objects import ObjectTable
from gateway.cluster.placements import Assumption, Placement, placed
from gateway.cluster.rows import Rows
from moorage.models import NodeManifest, ObjectName, Pod
from moorage.models.base import NOTHING

ENDED_PODS = 1000
"""Pods that ended last: a call about one of them may still be on its way."""


class ClusterState:
    """Nodes with their rows, and pods with their places.

    Attributes:
        generation: Grows with every change that replicas must see.
        rows: The nodes, each with its row.
        manifests_changed: The generation in which a node or an object last came, went or changed.
        pods: The pods that have not ended, bound or not, by UID.
        objects: The objects of the additional kinds that plugins read.
        nominated: The nodes that pods without a node are nominated for, by UID. They are no places:
            cycles of other pods count them, see `gateway.scheduling.nominated`.
        places: The node that each pod is bound to, assumed on, or has claimed, by UID.
        heavy: The large pods.
        listeners: Called after each change, also of pods without a place; must not change anything.
    """

    def __init__(
        self,
        *,
        assumed_ttl: float = 300.0,
        claim_ttl: float = 120.0,
        kept_changes: int = 50_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start empty.

        Args:
            assumed_ttl: Seconds that a pod stays assumed after its bind until it is seen bound.
            claim_ttl: Seconds that a pod keeps a claimed node while no bind comes.
            kept_changes: Changes that are kept; a replica that is further behind gets everything.
            clock: A monotonic clock in seconds.
        """
        self.generation = 1
        self.rows = Rows()
        self.manifests_changed = self.generation
        self.objects = ObjectTable(self._record_object)
        self.listeners: list[Callable[[], None]] = []
        self._assumed_ttl, self._claim_ttl, self._clock = assumed_ttl, claim_ttl, clock
        self.heavy = HeavyPods()
        self.pods: dict[str, Pod] = {}
        self.nominated: dict[str, str] = {}
        self._assumed: dict[str, Assumption] = {}
        self._ended: deque[str] = deque(maxlen=ENDED_PODS)
        self.places: dict[str, str] = {}
        self._on_node: dict[str, set[str]] = {}
        self._log: deque[tuple[int, Key]] = deque(maxlen=kept_changes)
        self._backlogs: list[Backlog] = []

    @property
    def counts(self) -> dict[str, int]:
        """How many nodes, pods with a place, assumed pods, claims among them, and objects."""
        return {
            "nodes": len(self.rows.of),
            "pods": len(self.places),
            "assumed_pods": len(self._assumed),
            "claims": sum(each.is_claim for each in self._assumed.values()),
            **self.objects.counts,
        }

    def now(self) -> float:
        """Return the time on the clock by which claims end."""
        return self._clock()

    def has_ended(self, uid: str) -> bool:
        """Whether a pod was deleted or has ended not long ago."""
        return uid not in self.pods and uid in self._ended

    def place_of(self, uid: str) -> str:
        """Return the node that a pod is bound to, assumed on, or has claimed; "" if none."""
        return self.places.get(uid, "")

    def bound_to(self, uid: str) -> str:
        """Return the node that the watch shows a pod on; "" if none."""
        pod = self.pods.get(uid)
        return pod.spec.node_name if pod is not None else ""

    def placements(self, node: str) -> list[Placement]:
        """Return what is on a node."""
        return [self._placement(uid) for uid in self._on_node.get(node, ())]

    def _placement(self, uid: str) -> Placement:
        assumption = self._assumed.get(uid)
        if assumption is None:
            return Placement(pod=self.pods[uid], state="bound")
        return Placement(pod=assumption.pod, state="claimed" if assumption.is_claim else "assumed")

    def held(self) -> list[Pod]:
        """Return the pods that are assumed or claimed, each as it will be on its node."""
        return [each.pod for each in self._assumed.values()]

    def known_pods(self) -> Sequence[str]:
        """Return the UIDs of all pods that were seen."""
        return list(self.pods)

    # What the watches show.

    def set_node(self, manifest: NodeManifest) -> None:
        """Take over a node; one that reads the same is no change."""
        name = manifest.metadata.name
        old = self.rows.entries.get(name)
        if old is not None and old.manifest == manifest:
            return
        row = self.rows.put(manifest)
        # Pods that were bound before their node was seen have waited for it.
        self._record_node(row, name, with_pods=old is None)

    def drop_node(self, name: str) -> None:
        """Forget a node; its pods keep their place in case it comes back."""
        row = self.rows.free(name)
        if row is not None:
            self._record_node(row, name, with_pods=True)

    def set_pod(self, pod: Pod, failure: str = "", size: int = 0) -> None:
        """Take over a pod that has not ended, of *size* bytes at the API server.

        If it shows another failed attempt than before its claim, the claim is over.
        """
        uid, node = pod.metadata.uid, pod.spec.node_name
        if size >= HEAVY_BYTES or uid in self.heavy.of:
            pod = self.heavy.take(pod, size)
        old = self.pods.get(uid)
        if old != pod:
            self.pods[uid] = pod
            nominated = "" if node else pod.status.nominated_node_name
            if nominated or uid in self.nominated:
                self._nominate(uid, "" if pod.metadata.deletion_timestamp else nominated)
            assumed = self._assumed.pop(uid, None) if node else None
            if assumed is not None:
                was, status = assumed.pod, pod.status
                # All but the time, and the end of a nomination.
                now = (pod.metadata, pod.spec, status.phase, status.counted)
                if now == (was.metadata, was.spec, was.status.phase, was.status.counted):
                    return  # as it was assumed: replicas know it
            # Replicas do not need a pod before it has a place.
            if node or (old is not None and old.spec.node_name):
                self._update_placement(uid)
            else:
                for listener in self.listeners:
                    listener()
        claim = self._assumed.get(uid) if failure else None
        if claim is not None and claim.failure is not None and failure != claim.failure:
            self.release(uid)

    def drop_pod(self, uid: str) -> None:
        """Forget a pod that was deleted or has ended."""
        self.pods.pop(uid, None)
        if uid in self.nominated:
            self._nominate(uid, "")
        if uid in self.heavy.of:
            self.heavy.drop(uid)
        self._ended.append(uid)
        self._assumed.pop(uid, None)
        self._update_placement(uid)

    def _nominate(self, uid: str, node: str) -> None:
        """Note the node that a pod is nominated for; "" if none. Replicas need not know."""
        if node:
            self.nominated[uid] = node
        elif not self.nominated.pop(uid, ""):
            return
        self._record()

    # What is known before the watch shows it.

    def is_assumed(self, uid: str) -> bool:
        """Whether a bind of the pod has come that the watch has not shown."""
        assumption = self._assumed.get(uid)
        return assumption is not None and not assumption.is_claim

    def claim(
        self,
        pod: Pod,
        node: str,
        failure: str | None = "",
        seconds: float = math.inf,
        annotations: Mapping[str, str] = NOTHING,
    ) -> None:
        """Count *pod* as placed on *node* from here on, before its bind comes.

        Args:
            pod: The pod.
            node: The node's name.
            failure: The failed attempt that the pod shows already; None if none ends the claim.
            seconds: It ends after so many, if not before.
            annotations: What it gets by its bind.
        """
        expires = self._clock() + min(seconds, self._claim_ttl)
        there = placed(pod, node, annotations)
        self._assumed[pod.uid] = Assumption(there, expires, True, failure, annotations)
        self._update_placement(pod.uid)

    def is_claimed(self, uid: str) -> bool:
        """Whether a pod has a claim, and no bind of it has come."""
        assumption = self._assumed.get(uid)
        return assumption is not None and assumption.is_claim

    def keep_claim(self, uid: str, seconds: float = math.inf) -> None:
        """Let a pod's claim, if it has one, end in so many seconds, or when claims do."""
        assumption = self._assumed.get(uid)
        if assumption is not None and assumption.is_claim:
            assumption.expires = self._clock() + min(seconds, self._claim_ttl)

    def assume(
        self, pod: Pod, node: str, annotations: Mapping[str, str] = NOTHING
    ) -> Mapping[str, str]:
        """Count *pod* as placed on *node* while its bind is under way; return what it gets by that.

        What its claim of the node says counts, or an earlier bind, which may have been written;
        otherwise *annotations*.
        """
        uid = pod.metadata.uid
        before = self._assumed.get(uid)
        if before is not None and before.pod.spec.node_name == node:
            annotations = before.annotations
        now = Assumption(placed(pod, node, annotations), annotations=annotations)
        self._assumed[uid] = now
        if before is None or before.pod != now.pod:
            self._update_placement(uid)
        return annotations

    def confirm(self, uid: str) -> None:
        """Note that an assumed pod is bound; it stays assumed until the watch shows that."""
        if (assumption := self._assumed.get(uid)) is not None:
            assumption.expires = self._clock() + self._assumed_ttl

    def release(self, uid: str) -> None:
        """Drop a pod's claim, if it has one and no bind has come."""
        if self.is_claimed(uid):
            self.forget(uid)

    def release_all(self) -> None:
        """Drop all claims."""
        for uid in [uid for uid, each in self._assumed.items() if each.is_claim]:
            self.forget(uid)

    def forget(self, uid: str) -> None:
        """Note that an assumed pod is not bound after all."""
        if self._assumed.pop(uid, None) is not None:
            self._update_placement(uid)

    def expire(self, heard: float = math.inf) -> int:
        """Forget claims and assumed pods that were not seen bound in time; return how many.

        *heard* is when the watch of pods was known to be up to date last, on the clock: while it is
        silent, nothing is known about assumed pods.
        """
        now = self._clock()
        late = [
            uid
            for uid, each in self._assumed.items()
            if each.expires <= (now if each.is_claim else min(heard, now))
        ]
        for uid in late:
            self.forget(uid)
        return len(late)

    # What replicas are sent.

    def changes_since(self, generation: int) -> Changes | None:
        """Return what happened after *generation*; None if the log no longer goes back that far."""
        if generation == self.generation:
            return Changes(generation=generation)
        log = self._log
        if len(log) == log.maxlen and log[0][0] > generation:
            return None
        rows: dict[int, None] = {}
        uids: dict[str, None] = {}
        names: dict[ObjectName, None] = {}
        for changed, key in reversed(log):
            if changed <= generation:
                break
            if isinstance(key, int):
                rows[key] = None
            elif isinstance(key, str):
                uids[key] = None
            else:
                names[key] = None
        return self._changes(Keys(list(rows), list(uids), list(names)))

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
                keys = backlog.take(size)
                is_last = keys.is_last
                yield replace(self._changes(keys), partial=not is_last)
        finally:
            self._backlogs.remove(backlog)

    def _placed_uids(self) -> Iterator[str]:
        """Yield the pods node by node: the garbage collector takes long for one long list."""
        for name in list(self.rows.of):
            yield from list(self._on_node.get(name, ()))

    def _changes(self, keys: Keys) -> Changes:
        nodes: list[tuple[int, bytes]] = []
        removed_rows: list[int] = []
        for row in keys.rows:
            if (name := self.rows.name_at(row)) is not None:
                nodes.append((row, self.rows.entries[name].content))
            else:
                removed_rows.append(row)
        pods: list[tuple[int, Pod]] = []
        removed_pods: list[str] = []
        for uid in keys.uids:
            placed_on = self.rows.of.get(self.places.get(uid, ""))
            if placed_on is None:
                removed_pods.append(uid)
            else:
                assumption = self._assumed.get(uid)
                pods.append((placed_on, assumption.pod if assumption else self.pods[uid]))
        contents = self.objects.contents(keys.objects) if keys.objects else []
        return Changes(
            generation=self.generation,
            nodes=nodes,
            removed_rows=removed_rows,
            pods=pods,
            removed_pods=removed_pods,
            objects=[(key, content) for key, content in contents if content is not None],
            removed_objects=[key for key, content in contents if content is None],
        )

    def _update_placement(self, uid: str) -> None:
        """Determine where a pod is now, and record that it or its place changed."""
        assumption = self._assumed.get(uid)
        pod = assumption.pod if assumption is not None else self.pods.get(uid)
        node = pod.spec.node_name if pod is not None else ""
        before = self.places.pop(uid, "")
        if before:
            self._on_node[before].discard(uid)
            if not self._on_node[before]:
                del self._on_node[before]
        if node:
            self.places[uid] = node
            self._on_node.setdefault(node, set()).add(uid)
        if before or node:
            self._record(uid)
            for name in {before, node}:
                if (row := self.rows.of.get(name)) is not None:
                    self.rows.touch(row, self.generation)

    def _record_object(self, name: ObjectName) -> None:
        self._record(name)
        self.manifests_changed = self.generation

    def _record_node(self, row: int, name: str, *, with_pods: bool) -> None:
        """Record that a row has another node or none; its pods then have, or lose, their place."""
        self._record(row, *(self._on_node.get(name, ()) if with_pods else ()))
        self.manifests_changed = self.generation
        self.rows.touch(row, self.generation)

    def _record(self, *keys: Key) -> None:
        self.generation += 1
        for key in keys:
            self._log.append((self.generation, key))
            for backlog in self._backlogs:
                backlog.note(key)
        for listener in self.listeners:
            listener()
