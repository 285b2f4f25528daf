"""Nodes: which exist, which come, and which the autoscaler is not to take away."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import structs

from cli.capacity.autoscalers import EXISTING, Autoscaler, Template, claimed_node, suiting
from cli.capacity.cluster import ASKED_FOR, ClusterView
from cli.capacity.placeholder import NODE_ADDED, moment
from gateway.inspector.nodes import is_ready
from moorage.models import NodeManifest, Pod

SETTLED_SECONDS: Final = 10.0
"""How long a node has to be ready before it is judged, and counts as one that exists."""

OLD_SECONDS: Final = 60.0
"""A node of that age is not one that comes, unless its autoscaler says so."""

LABELS_SECONDS: Final = 60.0
"""How long nodes keep the label `EXISTING` after the last request."""

KEPT_SECONDS: Final = 15.0
"""From one look at a kept node to the next."""

NAMED_PODS: Final = 100
"""Pods that the annotation of a node names."""

Amounts = Mapping[str, int]


class NodeTracker:
    """What is known of nodes beside what they show: since when, and what has gone there."""

    def __init__(
        self, view: ClusterView, autoscaler: Autoscaler, say: Callable[[str], object]
    ) -> None:
        self._view = view
        self._autoscaler = autoscaler
        self._say = say
        self._ready_since: dict[str, float] = {}
        self._looked: dict[str, float] = {}
        self._used: Mapping[str, Sequence[Pod]] = {}
        self.asked_at = time.monotonic()  # requests of an earlier process may have just ended

    def note(self) -> None:
        """Note since when nodes are ready, and forget those that are gone."""
        now, nodes = time.monotonic(), self._view.nodes
        for name, node in nodes.items():
            if is_ready(node) and not self._autoscaler.is_coming(node):
                self._ready_since.setdefault(name, now)
            else:
                self._ready_since.pop(name, None)
        for kept in (self._ready_since, self._looked):
            for gone in kept.keys() - nodes.keys():
                del kept[gone]

    def is_settled(self, node: NodeManifest) -> bool:
        """Whether a node has been ready for a while."""
        since = self._ready_since.get(node.name)
        return since is not None and time.monotonic() - since >= SETTLED_SECONDS

    def is_known(self, node: NodeManifest) -> bool:
        """Whether a node is one that exists, rather than one that comes."""
        if self.is_settled(node):
            return True
        is_old = time.time() - moment(node.metadata.creation_timestamp) > OLD_SECONDS
        return is_old and not self._autoscaler.is_coming(node)

    @property
    def known(self) -> list[NodeManifest]:
        """The nodes that exist."""
        return [each for each in self._view.nodes.values() if self.is_known(each)]

    # ---- nodes that come

    async def note_used(self) -> None:
        """Read what pods on nodes that come have taken of their room, with or without a request."""
        if self._view.waiting:
            nodes = list(self._view.nodes.values())
            young = [each.name for each in nodes if not self.is_known(each)]
            found = await asyncio.gather(*map(self._view.pods_on, young))
            self._used = dict(zip(young, found, strict=True))

    def rooms(self, claims: Sequence[Mapping[str, Any]]) -> list["FreeCapacity"]:
        """Return what comes, without what open requests are to get of it.

        Autoscalers also add nodes by themselves: for pods that fit no node that exists.
        """
        nodes = [
            each
            for each in self._view.nodes.values()
            if not self.is_known(each) and EXISTING not in each.metadata.labels
        ]
        rooms = [FreeCapacity(each, self.taken(each.name)) for each in nodes]
        rooms += [FreeCapacity(claimed_node(each), ()) for each in claims]
        for uid, placeholder in self._view.placeholders.items():
            waiting = self._view.waiting.get(uid)
            if placeholder.is_open and waiting is not None:
                for room in rooms:
                    if room.takes(waiting.pod):
                        room.put(waiting.pod.requests)
                        break
        return rooms

    def taken(self, name: str) -> list[Amounts]:
        """Return what pods request that are on a node which comes, or that it came for."""
        taken = [pod.requests for pod in self._used.get(name, ())]
        for uid, each in self._view.placeholders.items():
            if each.reason == NODE_ADDED and each.nodes[-1:] == (name,):
                waiting = self._view.waiting.get(uid)
                if waiting is not None:
                    taken.append(waiting.pod.requests)
        return taken

    def is_full(self, node: NodeManifest, pod: Pod) -> bool:
        """Whether others have taken the room of a pod on a node that came for it.

        A node has too little for its pod until its kubelet has reported its devices.
        """
        used = self._used.get(node.name, ())
        if any(each.uid == pod.uid for each in used) or not FreeCapacity(node, ()).takes(pod):
            return False
        return not FreeCapacity(node, [each.requests for each in used]).takes(pod)

    # ---- what is written on nodes

    async def mark(self) -> None:
        """Mark nodes that exist while a node is asked for, and not longer than need be."""
        if not self._autoscaler.marks_nodes:
            return
        if any(each.is_open for each in self._view.placeholders.values()):
            self.asked_at = time.monotonic()
            await self.mark_existing()
        elif time.monotonic() - self.asked_at > LABELS_SECONDS:
            nodes = self._view.nodes.values()
            marked = [each.name for each in nodes if EXISTING in each.metadata.labels]
            await self._view.mark_existing(marked, value=None)

    async def mark_existing(self) -> None:
        """Mark the nodes that exist, if the autoscaler needs that."""
        if self._autoscaler.marks_nodes:
            names = [each.name for each in self.known if EXISTING not in each.metadata.labels]
            await self._view.mark_existing(names, value="true")

    async def keep(self, name: str, pod: str) -> None:
        """Have the autoscaler keep a node for a pod, given as NAMESPACE/NAME."""
        if (node := self._view.nodes.get(name)) is None:
            return
        named = _names(node)
        if pod in named or len(named) >= NAMED_PODS:
            return
        key, value = self._autoscaler.keep
        notes = {ASKED_FOR: ",".join(sorted({*named, pod})), key: value}
        await self._view.mark(name, annotations=notes)
        # As the watch shows it later, so that the next pod is added to it.
        metadata = node.metadata
        metadata = structs.replace(metadata, annotations={**metadata.annotations, **notes})
        self._view.nodes[name] = structs.replace(node, metadata=metadata)

    async def release(self) -> None:
        """Let the autoscaler take nodes away that no pod is on any more for which they came."""
        key, _ = self._autoscaler.keep
        now = time.monotonic()
        for name, node in list(self._view.nodes.items()):
            if ASKED_FOR not in node.metadata.annotations:
                continue
            if now - self._looked.get(name, float("-inf")) < KEPT_SECONDS:
                continue
            self._looked[name] = now
            named = _names(node)
            awaited = {
                f"{each.namespace}/{each.pod}"
                for each in self._view.placeholders.values()
                if each.reason == NODE_ADDED and each.nodes[-1:] == (name,)
            }
            pods = await self._view.pods_on(name)
            on_it = {f"{pod.namespace}/{pod.name}": pod.spec.scheduler_name for pod in pods}
            kept = named & (on_it.keys() | awaited)
            # Others of their schedulers that came later would fit nodes that the rule rejects, too.
            schedulers = {on_it[each] for each in kept & on_it.keys()}
            kept |= {each for each, scheduler in on_it.items() if scheduler in schedulers}
            if not kept:
                await self._view.mark(name, annotations={ASKED_FOR: None, key: None})
                self._say(f"node {name} is free to go: no pod is on it for which it came")
            elif kept != named:
                text = ",".join(sorted(kept)[:NAMED_PODS])
                await self._view.mark(name, annotations={ASKED_FOR: text})


class FreeCapacity:
    """What a node that comes has left."""

    def __init__(self, node: NodeManifest, taken: Sequence[Amounts]) -> None:
        # The taints that it has until it is ready are not known from others.
        self._node = structs.replace(node, spec=structs.replace(node.spec, taints=()))
        self._free = dict(node.allocatable)
        self._is_empty = not taken
        for each in taken:
            self.put(each)

    def takes(self, pod: Pod) -> bool:
        """Whether a pod fits, as far as its node is known."""
        if not self._node.status.allocatable:  # its kubelet has yet to say
            return self._is_empty
        if not suiting(pod, [Template(self._node, "")]):
            return False
        return self._free.get("pods", 1) > 0 and all(
            amount <= self._free.get(name, 0) for name, amount in pod.requests.items() if amount > 0
        )

    def put(self, requests: Amounts) -> None:
        """Take what a pod requests."""
        self._is_empty = False
        for name, amount in {**requests, "pods": 1}.items():
            if name in self._free:
                self._free[name] -= amount


def _names(node: NodeManifest) -> set[str]:
    return set(filter(None, node.metadata.annotations.get(ASKED_FOR, "").split(",")))
